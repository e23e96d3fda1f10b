"""A server that speaks enough of S3 to list and read the files of a folder, for tests."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape


@contextmanager
def object_store(folder, *, denied=False):  # noqa: C901  # one server
    """Where the files of a folder are, as the part of an address behind "?", in any bucket."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def answer(self, status, body=b"", **headers):
            self.send_response(status)
            for name, value in {"Content-Length": len(body), **headers}.items():
                self.send_header(name.replace("_", "-"), str(value))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def do_HEAD(self):
            self.do_GET()

        def do_GET(self):
            address = urlsplit(self.path)
            key = unquote(address.path).split("/", 2)[2:]
            if denied:
                self.answer(403, b"<Error><Code>AccessDenied</Code></Error>")
            elif not key or not key[0]:
                self.listing({name: values[0] for name, values in parse_qs(address.query).items()})
            elif not (folder / key[0]).is_file():
                self.answer(404)
            else:
                data = (folder / key[0]).read_bytes()
                dates = {"Last_Modified": "Mon, 16 Nov 2026 00:00:00 GMT", "ETag": '"x"'}
                if "Range" not in self.headers:
                    headers = {"Content_Length": len(data)} if self.command == "HEAD" else {}
                    self.answer(200, data, **dates, **headers)
                    return
                start, _, end = self.headers["Range"].removeprefix("bytes=").partition("-")
                part = data[int(start) : int(end) + 1]
                self.answer(206, part, Content_Range=f"bytes {start}-{end}/{len(data)}", **dates)

        def listing(self, query):
            prefix = query.get("prefix", "")
            names = sorted(
                path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
            )
            items, folders = [], {}
            for name in (name for name in names if name.startswith(prefix)):
                rest = name[len(prefix) :]
                if query.get("delimiter") and "/" in rest:
                    folders[prefix + rest.split("/")[0] + "/"] = True
                else:
                    size = (folder / name).stat().st_size
                    items.append(f"<Contents><Key>{escape(name)}</Key><Size>{size}</Size></Contents>")
            items += [f"<CommonPrefixes><Prefix>{escape(each)}</Prefix></CommonPrefixes>" for each in folders]
            head = f"<IsTruncated>false</IsTruncated><KeyCount>{len(items)}</KeyCount>"
            self.answer(200, f"<ListBucketResult>{head}{''.join(items)}</ListBucketResult>".encode())

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"endpoint_override=127.0.0.1:{server.server_port}&scheme=http&region=us-east-1"
    finally:
        server.shutdown()
        server.server_close()

"""The order in which a person's events are taken: by a keyed hash of (person, group, item, occurrence number).

Specification (docs/reference/contributions.md), so that every engine chooses the same events under the same key:

    digest(kind, bytes) = BLAKE2b-128 of the bytes, keyed with the release's key, personalized with the kind
    block 0: digest("person", UTF-8 of the person)
    block 1: digest("group", UTF-8 of the group's label)
    block 2: digest("item", UTF-8 of the item, or its 8 bytes, little-endian, two's complement)
    block 3: the occurrence number, 16 bytes, little-endian
    hash = CBC-MAC of the four blocks under AES-256 with the key BLAKE2b-256 of nothing, keyed and personalized with "cipher"

Events are taken in ascending order of the hash, read as a big-endian number. Guarantee: none of the privacy rests on this: for any key, which
events are taken is a function of that person's events alone. That the function is a keyed cryptographic one keeps anybody from
arranging for their favorite events to come first.
"""

import hashlib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

KEY_BYTES = 32


class TakingOrder:
    """The order under one key.

    Args:
        key: 32 bytes, drawn anew for each release.
        groups: The label of each group, by number.
    """

    def __init__(self, key: bytes, groups: Sequence[str]) -> None:
        self._key = key
        cipher_key = hashlib.blake2b(b"", digest_size=32, key=key, person=b"cipher").digest()
        self._cipher = Cipher(algorithms.AES(cipher_key), modes.ECB())  # noqa: S305  # one block at a time: the chain is below
        self._groups = self._digests("group", [label.encode() for label in groups])

    @property
    def group_count(self) -> int:
        """How many groups there are."""
        return len(self._groups)

    def hashes(
        self,
        persons: pa.Array,
        whose: NDArray[np.int64],
        groups: NDArray[np.int32],
        items: pa.Array,
        occurrences: NDArray[np.int64],
    ) -> NDArray[np.uint64]:
        """The hash of each event as two words, the high one first: n x 2.

        Args:
            persons: Different persons.
            whose: For each event, the number of its person among them.
            groups: The number of its group.
            items: Its item, as text or as int64.
            occurrences: Its number among the person's events of the same group and item.
        """
        coded = items.dictionary_encode()
        different = coded.dictionary.to_pylist()
        item_bytes = [
            item.encode() if isinstance(item, str) else item.to_bytes(8, "little", signed=True)
            for item in different
        ]
        numbers = np.zeros((len(occurrences), 2), dtype="<u8")
        numbers[:, 0] = occurrences
        person_digests = self._digests("person", [person.encode() for person in persons.to_pylist()])
        # the first step of the chain is the same for all events of a person
        state = self._encrypted(person_digests)[whose]
        state = self._encrypted(state ^ self._groups[groups])
        state = self._encrypted(state ^ self._digests("item", item_bytes)[coded.indices.to_numpy()])
        state = self._encrypted(state ^ numbers)
        return state.view(">u8").astype(np.uint64)

    def _digests(self, kind: str, texts: list[bytes]) -> NDArray[np.uint64]:
        """16 bytes for each text, as two words."""
        personal = kind.encode()
        joined = b"".join(
            hashlib.blake2b(text, digest_size=16, key=self._key, person=personal).digest() for text in texts
        )
        return np.frombuffer(joined, dtype="<u8").reshape(-1, 2)

    def _encrypted(self, blocks: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Each block of 16 bytes by itself."""
        encryptor = self._cipher.encryptor()
        done = encryptor.update(np.ascontiguousarray(blocks).tobytes())
        return np.frombuffer(done, dtype="<u8").reshape(-1, 2)

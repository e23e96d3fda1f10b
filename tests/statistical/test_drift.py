"""What changed between two releases of votes, with nobody, half or all of the people in both: false alarms, and a real change."""

import numpy as np

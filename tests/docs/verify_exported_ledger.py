"""Check a ledger that was read from GET /ledger: verify_exported_ledger.py PAGE.json ..."""

import hashlib
import json
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any


def entry_hash(entry: dict[str, Any]) -> str:
    """Return the hash that an entry must have."""
    covered = {key: entry[key] for key in ("body", "kind", "sequence", "version")}
    text = json.dumps(covered, sort_keys=True, separators=(",", ":"))
    lines = ("conclave-ledger-entry-1", entry["previous_hash"], text)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def check(entries: list[dict[str, Any]]) -> str:
    """Return what all entries, from the first, add up to; exit at what does not hold."""
    head, answered, unstable, charged, opened = "0" * 64, 0, 0, Fraction(0), entries[0]["body"]
    for number, entry in enumerate(entries, start=1):
        body, kind, stable = entry["body"], entry["kind"], entry["body"].get("stable", [])
        sound = entry["previous_hash"] == head and entry["hash"] == entry_hash(entry)
        if entry["sequence"] != number or (kind == "ReleaseOpened") != (number == 1) or not sound:
            sys.exit(f"entry {number} is missing, altered, or not where it should be")
        if stable and body["first_query_id"] != answered + 1:
            sys.exit(f"entry {number} leaves out answers")
        answered += len(stable)
        unstable += sum(body.get("units", [not each for each in stable]))
        charged += Fraction(body["epsilon"]) if kind == "ShareCharged" else 0
        head = entry["hash"]
    if charged > Fraction(opened["epsilon"]) or unstable > (opened["cutoff"] or unstable):
        sys.exit("the release exceeds its budget")
    return f"{number} entries, head {head}, answered {answered}, unstable {unstable}\n"


if __name__ == "__main__":
    pages = [json.loads(Path(page).read_text(encoding="utf-8")) for page in sys.argv[1:]]
    sys.stdout.write(check([entry for page in pages for entry in page["entries"]]))

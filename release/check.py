"""Build what a release consists of, and check it: ``make release``.

The sdist, the pure wheel and the site are built twice where that is cheap: the same sources must give the same bytes.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
import zipfile
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

ROOT = Path(__file__).resolve().parents[1]
DIST, SITE = ROOT / "dist", ROOT / "site"


def run(*command: str) -> None:
    """Run a command; its failure ends the release."""
    subprocess.run([sys.executable, *command], cwd=ROOT, check=True)


def build() -> dict[str, str]:
    """The digests of the sdist and the pure wheel, built anew."""
    for old in DIST.glob("powersum-*"):
        old.unlink()
    run("-m", "build", "--outdir", str(DIST))
    return {file.name: digest(file) for file in sorted(DIST.glob("powersum-*"))}


def digest(file: Path) -> str:
    """SHA-256 of the content: members of archives by name, without their times."""
    found = hashlib.sha256()
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as archive:
            for name in sorted(archive.namelist()):
                found.update(name.encode() + archive.read(name))
    else:
        with tarfile.open(file) as archive:
            for member in sorted(archive.getmembers(), key=lambda one: one.name):
                content = archive.extractfile(member)
                found.update(member.name.encode() + (content.read() if content else b""))
    return found.hexdigest()


class Page(HTMLParser):
    """Links and places of a page of the site."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Called for each element."""
        for name, value in attrs:
            if value and name in ("href", "src") and tag in ("a", "img", "script", "link"):
                self.links.append(value)
            if value and name in ("id", "name"):
                self.places.add(value)


def broken_links(site: Path) -> list[str]:
    """Links of a site that lead to no file or to no place of a page."""
    pages = {page.resolve(): Page(page.read_text(encoding="utf-8")) for page in site.rglob("*.html")}
    broken = []
    for page, content in pages.items():
        if page.name == "404.html":
            continue
        for link in content.links:
            path, place = urldefrag(link)
            if ":" in path.split("/")[0] or path.startswith("//"):
                continue
            target = (page.parent / unquote(path)).resolve() if path else page
            if not target.exists():
                broken.append(f"{page.name}: {link}: there is no such file")
            elif place and target in pages and unquote(place) not in pages[target].places:
                broken.append(f"{page.name}: {link}: there is no such place")
    return broken


def main() -> int:
    """Build and check; 1 with one line for each fault."""
    first = build()
    second = build()
    faults = [f"{name}: two builds differ" for name, value in first.items() if second.get(name) != value]
    run("-m", "twine", "check", "--strict", *map(str, sorted(DIST.glob("powersum-*"))))
    run("-m", "mkdocs", "build", "--strict", "--quiet")
    faults += broken_links(SITE)
    run("-m", "tools.words")
    for fault in faults:
        print(fault)
    for name, value in second.items():
        print(f"{value}  {name}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

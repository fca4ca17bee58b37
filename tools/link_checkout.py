"""Makes a virtual environment use the checkout: links the built libraries into the package, where
torchjanus/library.py looks for them, and adds the checkout to the environment's path.

usage: link_checkout.py BUILD_FOLDER ENVIRONMENT
"""

import sys
from pathlib import Path


def main() -> None:
    build, environment = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    checkout = Path(__file__).resolve().parent.parent
    libraries = build / "libraries"
    for old in (checkout / "torchjanus" / "libraries").rglob("*.so"):
        if not old.exists():  # a link to what is no longer built
            old.unlink()
    for built in libraries.rglob("*.so"):
        link = checkout / "torchjanus" / "libraries" / built.relative_to(libraries)
        link.parent.mkdir(parents=True, exist_ok=True)
        if not (link.is_symlink() and link.resolve() == built):
            link.unlink(missing_ok=True)
            link.symlink_to(built)
    for packages in environment.glob("lib/python*/site-packages"):
        (packages / "torchjanus-checkout.pth").write_text(f"{checkout}\n")
    command = environment / "bin" / "torchjanus"
    interpreter = environment / "bin" / "python"
    command.write_text(
        f"#!{interpreter}\nfrom torchjanus.start import main\n\nraise SystemExit(main())\n"
    )
    command.chmod(0o755)


if __name__ == "__main__":
    main()

"""What single file formats show about their own completeness; `..format_checks` picks one by a file's suffix.

Every check reads a bounded part of a file, loads nothing that it finds there, and remembers nothing.
"""

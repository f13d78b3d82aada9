"""Text documents as trees of values that know where they were written; pure.

The front matter of a workflow file and the issues of the file tracker, as YAML or JSON, are read
into one kind of tree, so that values are looked up, and faults placed, in one way.
"""

from sortie.documents.front_matter import FrontMatter, split_front_matter
from sortie.documents.places import Duplicate, Fault, Place, Text
from sortie.documents.tree import Node, Path, Scalar, dotted
from sortie.documents.yaml_reader import Yaml, YamlRules, read_yaml

__all__ = [
    "Duplicate",
    "Fault",
    "FrontMatter",
    "Node",
    "Path",
    "Place",
    "Scalar",
    "Text",
    "Yaml",
    "YamlRules",
    "dotted",
    "read_yaml",
    "split_front_matter",
]

"""Reading and writing git objects without ever looking at a working directory."""

from patchstack.tree.git.model import GitBlobHash, GitCommitHash, GitObjectHash, GitTreeHash, TreeEntry
from patchstack.tree.git.repository import Repository
from patchstack.tree.git.tree import Tree

__all__ = ["GitBlobHash", "GitCommitHash", "GitObjectHash", "GitTreeHash", "Repository", "Tree", "TreeEntry"]

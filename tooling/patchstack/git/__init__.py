"""Reading and writing git objects without ever looking at a working directory."""

from patchstack.git.model import GitBlobHash, GitCommitHash, GitObjectHash, GitTreeHash, TreeEntry
from patchstack.git.repository import Repository
from patchstack.git.tree import Tree

__all__ = ["GitBlobHash", "GitCommitHash", "GitObjectHash", "GitTreeHash", "Repository", "Tree", "TreeEntry"]

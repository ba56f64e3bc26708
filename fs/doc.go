// Package fs shows a tree of package format through FUSE: nodes, mount options and the read path; and it
// finds, ends and clears away mounts of weightfs. It knows no container and no view, only the tree's
// nodes. It is for Linux; elsewhere it is empty.
package fs

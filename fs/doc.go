// Package fs shows a tree of package format through FUSE: nodes, mount options and the read path.
// It is for Linux; elsewhere it is empty.
package fs

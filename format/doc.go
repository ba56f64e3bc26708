// Package format turns a checkpoint on disk into an immutable tree: it finds the shards, has each
// parsed, and shows every tensor in several views. The FUSE nodes and every verb walk this one tree.
//
// What a container looks like inside is for the packages below it, what a model is called and where
// it is cached for package store, and how the tree is shown for package fs.
package format

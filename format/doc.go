// Package format turns a checkpoint on disk into an immutable tree that is an io/fs.FS: it finds the
// shards, has each parsed, and shows every tensor in several views. The FUSE nodes and every verb
// walk this one tree.
package format

//go:build linux

package fs

import (
	"context"
	"strconv"
	"strings"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"

	"weightfs/format"
)

var (
	_ fusefs.NodeGetxattrer  = (*fileNode)(nil)
	_ fusefs.NodeListxattrer = (*fileNode)(nil)
)

// xattrs are a tensor's extended attributes in their order. The offset is left out where the bytes
// are not one range of the file.
func xattrs(f format.File) [][2]string {
	tf, ok := f.(format.TensorFile)
	if !ok {
		return nil
	}
	t := tf.Tensor()
	list := [][2]string{
		{"user.tensor.name", t.Name},
		{"user.tensor.dtype", t.DType.String()},
		{"user.tensor.shape", shape(t.Shape)},
	}
	if t.Shard != nil {
		list = append(list, [2]string{"user.tensor.file", t.Shard.Name})
		if t.Layout == nil {
			list = append(list, [2]string{"user.tensor.offset", strconv.FormatInt(t.Extent.Off, 10)})
		}
	}
	return list
}

// shape is a JSON array without spaces: [2,3].
func shape(dims []uint64) string {
	words := make([]string, len(dims))
	for i, d := range dims {
		words[i] = strconv.FormatUint(d, 10)
	}
	return "[" + strings.Join(words, ",") + "]"
}

func (f *fileNode) Getxattr(_ context.Context, attr string, dest []byte) (uint32, syscall.Errno) {
	for _, x := range xattrs(f.file) {
		if x[0] == attr {
			return give(x[1], dest)
		}
	}
	return 0, syscall.ENODATA
}

func (f *fileNode) Listxattr(_ context.Context, dest []byte) (uint32, syscall.Errno) {
	var names strings.Builder
	for _, x := range xattrs(f.file) {
		names.WriteString(x[0] + "\x00")
	}
	return give(names.String(), dest)
}

// give follows getxattr(2): a buffer too short gets ERANGE and the length.
func give(s string, dest []byte) (uint32, syscall.Errno) {
	if len(s) > len(dest) {
		return uint32(len(s)), syscall.ERANGE
	}
	return uint32(copy(dest, s)), 0
}

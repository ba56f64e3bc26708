//go:build linux

package main

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// A weight is a tensor of a checkpoint that is made here.
type weight struct {
	name       string
	kind       kind
	shape      []int
	data       []byte
	transposed bool // in files that know strides it is stored the other way round
}

// A kind is an element type by the names of the formats; empty where a format lacks it.
type kind struct {
	size                      int // of a block
	block                     int // elements of a block
	safetensors, numpy, torch string
	gguf, onnx                uint32
}

var (
	f32 = kind{4, 1, "F32", "<f4", "FloatStorage", 0, 1}
	f16 = kind{2, 1, "F16", "<f2", "HalfStorage", 1, 10}
	i64 = kind{8, 1, "I64", "<i8", "LongStorage", 27, 7}
	q8  = kind{34, 32, "", "", "", 8, 0}
	q4  = kind{18, 32, "", "", "", 2, 0}
)

func newWeight(name string, k kind, shape ...int) weight {
	n := 1
	for _, d := range shape {
		n *= d
	}
	data := make([]byte, n/k.block*k.size)
	r := rand.NewPCG(uint64(len(name)), uint64(len(data)))
	for i := 0; i+8 <= len(data); i += 8 {
		// A few bits of each byte, so that there is something to deflate.
		binary.LittleEndian.PutUint64(data[i:], r.Uint64()&0x3f1f3f1f3f1f3f1f)
	}
	return weight{name: name, kind: k, shape: shape, data: data}
}

// weights is a small model of several blocks, about 12 MiB.
func weights(quantised bool) (list []weight) {
	big, small := f32, f16
	if quantised {
		big, small = q8, q4
	}
	list = append(list, newWeight("model.embed.weight", f16, 2048, 256), newWeight("model.steps", i64, 1000))
	for i := range 4 {
		block := func(name string) string { return fmt.Sprintf("model.layers.%d.%s", i, name) }
		q := newWeight(block("attn.q.weight"), big, 512, 512)
		q.transposed = i%2 == 1
		list = append(list, q, newWeight(block("mlp.up.weight"), small, 1024, 512),
			newWeight(block("experts.weight"), f32, 8, 64, 128), newWeight(block("norm.weight"), f32, 512))
	}
	return list
}

func makeAll(dir string) error {
	for name, write := range map[string]func(dir string, list []weight) error{
		"safetensors": writeSafetensors, "gguf": writeGGUF, "torch": writeTorch, "onnx": writeONNX,
		"npz-stored":   func(dir string, list []weight) error { return writeNPZ(dir, list, zip.Store) },
		"npz-deflated": func(dir string, list []weight) error { return writeNPZ(dir, list, zip.Deflate) },
	} {
		list := weights(name == "gguf")
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			return err
		}
		if err := write(filepath.Join(dir, name), list); err != nil {
			return err
		}
		for _, w := range list {
			path := rawPath(filepath.Join(dir, "raw", name), w.name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(path, w.data, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// rawPath is a tensor's place in raw/: directories up to the last dot but one.
func rawPath(dir, name string) string {
	parts := strings.Split(name, ".")
	keep := max(len(parts)-2, 0)
	return filepath.Join(append(append([]string{dir}, parts[:keep]...), strings.Join(parts[keep:], ".")+".raw")...)
}

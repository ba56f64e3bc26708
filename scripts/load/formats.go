//go:build linux

package main

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

var le = binary.LittleEndian

// writeSafetensors writes two files and an index.
func writeSafetensors(dir string, list []weight) error {
	var index []string
	for part := range 2 {
		var entries []string
		var data bytes.Buffer
		name := fmt.Sprintf("model-%05d-of-00002.safetensors", part+1)
		for _, w := range list[part*len(list)/2 : (part+1)*len(list)/2] {
			begin := data.Len()
			data.Write(w.data)
			entries = append(entries, fmt.Sprintf(`%q:{"dtype":%q,"shape":%s,"data_offsets":[%d,%d]}`,
				w.name, w.kind.safetensors, joined("[", w.shape, "]"), begin, data.Len()))
			index = append(index, fmt.Sprintf("%q:%q", w.name, name))
		}
		header := "{" + strings.Join(entries, ",") + "}"
		out := le.AppendUint64(nil, uint64(len(header)))
		if err := os.WriteFile(filepath.Join(dir, name), append(append(out, header...), data.Bytes()...), 0o644); err != nil {
			return err
		}
	}
	text := `{"weight_map":{` + strings.Join(index, ",") + "}}"
	return os.WriteFile(filepath.Join(dir, "model.safetensors.index.json"), []byte(text), 0o644)
}

func joined(open string, shape []int, end string) string {
	words := make([]string, len(shape))
	for i, d := range shape {
		words[i] = fmt.Sprint(d)
	}
	return open + strings.Join(words, ",") + end
}

// writeGGUF writes version 3 with the least metadata.
func writeGGUF(dir string, list []weight) error {
	const align = 32
	text := func(b []byte, s string) []byte { return append(le.AppendUint64(b, uint64(len(s))), s...) }
	b := le.AppendUint32([]byte("GGUF"), 3)
	b = le.AppendUint64(le.AppendUint64(b, uint64(len(list))), 1)
	b = text(le.AppendUint32(text(b, "general.architecture"), 8), "llama")
	var data []byte
	for _, w := range list {
		b = le.AppendUint32(text(b, w.name), uint32(len(w.shape)))
		for i := range w.shape {
			b = le.AppendUint64(b, uint64(w.shape[len(w.shape)-1-i]))
		}
		b = le.AppendUint64(le.AppendUint32(b, w.kind.gguf), uint64(len(data)))
		data = padded(append(data, w.data...), align)
	}
	return os.WriteFile(filepath.Join(dir, "model.gguf"), append(padded(b, align), data...), 0o644)
}

func padded(b []byte, align int) []byte { return append(b, make([]byte, -len(b)&(align-1))...) }

// writeTorch writes a dictionary of tensors as torch.save does: a pickle and a storage for each.
func writeTorch(dir string, list []weight) error {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	p := []byte("\x80\x02}(")
	text := func(s string) { p = append(le.AppendUint32(append(p, 'X'), uint32(len(s))), s...) }
	numbers := func(list []int) {
		p = append(p, '(')
		for _, n := range list {
			p = le.AppendUint32(append(p, 'J'), uint32(n))
		}
		p = append(p, 't')
	}
	for i, w := range list {
		data, strides := w.stored()
		text(w.name)
		p = append(p, "ctorch._utils\n_rebuild_tensor_v2\n(("...)
		text("storage")
		p = append(p, "ctorch\n"+w.kind.torch+"\n"...)
		text(fmt.Sprint(i))
		text("cpu")
		p = append(le.AppendUint32(append(p, 'J'), uint32(len(data)/w.kind.size)), "tQK\x00"...)
		numbers(w.shape)
		numbers(strides)
		p = append(p, "\x89ccollections\nOrderedDict\n)RtR"...)
		if err := store(z, fmt.Sprintf("model/data/%d", i), data, zip.Store); err != nil {
			return err
		}
	}
	for name, data := range map[string][]byte{"data.pkl": append(p, "u."...), "version": []byte("3\n"), "byteorder": []byte("little")} {
		if err := store(z, "model/"+name, data, zip.Store); err != nil {
			return err
		}
	}
	return finish(z, &b, filepath.Join(dir, "model.pt"))
}

// stored is how a tensor lies in a file that has strides.
func (w *weight) stored() (data []byte, strides []int) {
	strides = make([]int, len(w.shape))
	step := 1
	for i := len(w.shape) - 1; i >= 0; i-- {
		strides[i] = step
		step *= w.shape[i]
	}
	if !w.transposed {
		return w.data, strides
	}
	rows, columns, size := w.shape[0], w.shape[1], w.kind.size
	data = make([]byte, len(w.data))
	for i := range rows * columns {
		r, c := i/columns, i%columns
		copy(data[(c*rows+r)*size:], w.data[i*size:(i+1)*size])
	}
	return data, []int{1, rows}
}

func store(z *zip.Writer, name string, data []byte, method uint16) error {
	w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: method})
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

func finish(z *zip.Writer, b *bytes.Buffer, path string) error {
	if err := z.Close(); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// writeNPZ writes what numpy.savez or numpy.savez_compressed writes.
func writeNPZ(dir string, list []weight, method uint16) error {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, w := range list {
		data, order := w.data, "False"
		if w.transposed {
			data, _ = w.stored()
			order = "True"
		}
		header := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }", w.kind.numpy, order, joined("(", w.shape, ",)"))
		header += strings.Repeat(" ", 63-(10+len(header))%64) + "\n"
		npy := append(le.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(header))), header...)
		if err := store(z, w.name+".npy", append(npy, data...), method); err != nil {
			return err
		}
	}
	return finish(z, &b, filepath.Join(dir, "model.npz"))
}

// writeONNX writes a graph of initializers alone.
func writeONNX(dir string, list []weight) error {
	var graph []byte
	for _, w := range list {
		var t, dims []byte
		for _, d := range w.shape {
			dims = binary.AppendUvarint(dims, uint64(d))
		}
		t = field(t, 1, dims)
		t = binary.AppendUvarint(append(t, 2<<3), uint64(w.kind.onnx))
		t = field(field(t, 8, []byte(w.name)), 9, w.data)
		graph = field(graph, 5, t)
	}
	model := field([]byte{1 << 3, 8}, 7, field(graph, 2, []byte("model")))
	return os.WriteFile(filepath.Join(dir, "model.onnx"), field(model, 8, []byte{2 << 3, 17}), 0o644)
}

// field appends a length-delimited field of a protocol buffer.
func field(b []byte, number int, data []byte) []byte {
	b = binary.AppendUvarint(b, uint64(number<<3|2))
	return append(binary.AppendUvarint(b, uint64(len(data))), data...)
}

package torch

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"hash/crc32"
	"strings"
	"testing"
)

// Pickles are written down opcode by opcode: text is BINUNICODE, number LONG1, tuple MARK … TUPLE.

func str(s string) string {
	return "X" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) + s
}

func number(n int64) string {
	return "\x8a\x08" + string(binary.LittleEndian.AppendUint64(nil, uint64(n)))
}

func numbers(ns ...int64) string {
	var b strings.Builder
	for _, n := range ns {
		b.WriteString(number(n))
	}
	return tuple(b.String())
}

func tuple(items ...string) string { return "(" + strings.Join(items, "") + "t" }

func global(dotted string) string {
	at := strings.LastIndexByte(dotted, '.')
	return "c" + dotted[:at] + "\n" + dotted[at+1:] + "\n"
}

func call(dotted string, args ...string) string { return global(dotted) + tuple(args...) + "R" }

func stored(class, key string, numel int64) string {
	return tuple(str("storage"), global("torch."+class), str(key), str("cpu"), number(numel)) + "Q"
}

const falseHooks = "\x89ccollections\nOrderedDict\n)R"

func tensorOf(storage string, offset int64, size, stride string) string {
	return call("torch._utils._rebuild_tensor_v2", storage, number(offset), size, stride, falseHooks)
}

// floats is a contiguous tensor of n float32 in data/key.
func floats(key string, n int64) string {
	return tensorOf(stored("FloatStorage", key, n), 0, numbers(n), numbers(1))
}

func dict(items ...string) string { return "}(" + strings.Join(items, "") + "u" }

func pkl(value string) string { return "\x80\x02" + value + "." }

// A member is one record of a built archive.
type member struct {
	name, data string
	method     uint16
	change     func(*zip.FileHeader)
}

// archiveOf writes an archive with the records that every archive has, and those given; one of the
// same name takes the place of the first.
func archiveOf(t testing.TB, pickle string, members ...member) []byte {
	t.Helper()
	all := []member{{name: "m/data.pkl", data: pickle}, {name: "m/byteorder", data: "little"}, {name: "m/version", data: "3\n"}}
	for _, m := range members {
		at := len(all)
		for i := range all[:3] {
			if all[i].name == m.name {
				at = i
			}
		}
		all = append(all[:at], append([]member{m}, all[min(at+1, len(all)):]...)...)
	}
	return zipOf(t, all...)
}

func zipOf(t testing.TB, members ...member) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, m := range members {
		data := []byte(m.data)
		if m.method == zip.Deflate {
			data = deflated(m.data)
		}
		h := &zip.FileHeader{Name: m.name, Method: m.method, CRC32: crc32.ChecksumIEEE([]byte(m.data)),
			CompressedSize64: uint64(len(data)), UncompressedSize64: uint64(len(m.data))}
		if m.change != nil {
			m.change(h)
		}
		w, err := z.CreateRaw(h)
		if err != nil {
			t.Fatal(err)
		}
		w.Write(data)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func deflated(s string) []byte {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.BestCompression)
	w.Write([]byte(s))
	w.Close()
	return b.Bytes()
}

// legacyOf writes a file of the legacy format: storages alternate keys and elements.
func legacyOf(object string, storages ...string) []byte {
	var keys, data strings.Builder
	for i := 0; i < len(storages); i += 2 {
		keys.WriteString(str(storages[i]))
		data.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(storages[i+1])/4)))
		data.WriteString(storages[i+1])
	}
	return []byte(pkl("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19") + pkl("M\xe9\x03") + pkl(dict(str("little_endian"), "\x88")) +
		pkl(object) + pkl("]("+keys.String()+"e") + data.String())
}

func legacyFloats(key string, n int64) string {
	storage := tuple(str("storage"), global("torch.FloatStorage"), str(key), str("cpu"), number(n), "N") + "Q"
	return tensorOf(storage, 0, numbers(n), numbers(1))
}

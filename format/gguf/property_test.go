package gguf

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weightfs/format/tensor"
)

// What is written comes back, whatever the version, byte order, types, alignment, gaps and order.
func TestWhatIsWrittenComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		order := rapid.SampledFrom([]binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian}).Draw(t, "order")
		version := rapid.Uint32Range(1, 3).Draw(t, "version")
		align := 1 << rapid.IntRange(0, 8).Draw(t, "alignment")
		keys := rapid.IntRange(0, 8).Draw(t, "keys")
		want := drawTensors(t, align)

		b := build(version, order, uint64(len(want)), uint64(keys+1))
		meta := tensor.Object{{Key: alignmentKey, Value: uint64(align)}}
		b.key(alignmentKey, typeU32).u32(uint32(align))
		for i := range keys {
			key := fmt.Sprintf("key.%d", i)
			typ := drawType(t, 0)
			meta = append(meta, tensor.KV{Key: key, Value: drawValue(t, b.key(key, typ), typ, 0)})
		}
		end := int64(0)
		for i := range want {
			info := &want[i]
			b.tensor(info.Name, info.Extra.Get("id").(uint32), uint64(info.Extent.Off), info.Extra.Get("ne").([]uint64)...)
			end = max(end, info.Extent.Off+info.Extent.Len)
		}
		b.data(align, 0)
		base := int64(b.Len())
		h, err := b.data(1, int(end)).parse()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(tensor.AppendJSON(nil, meta)), string(tensor.AppendJSON(nil, h.Meta))); diff != "" {
			t.Fatal(diff)
		}
		for i, got := range h.Tensors {
			w := want[i]
			w.Extent.Off += base
			if got.Name != w.Name || got.DType != w.DType || !cmp.Equal(got.Shape, w.Shape) || got.Bytes != w.Bytes || got.Extent != w.Extent {
				t.Fatalf("got %+v, want %+v", got, w)
			}
		}
		if len(h.Tensors) != len(want) || len(h.Tolerable) > 0 {
			t.Fatalf("%d tensors, faults %v", len(h.Tensors), h.Tolerable)
		}
	})
}

// drawTensors places tensors one behind the other with gaps, and then shuffles them.
func drawTensors(t *rapid.T, align int) []tensor.Info {
	var infos []tensor.Info
	off := int64(0)
	for i := range rapid.IntRange(0, 6).Draw(t, "tensors") {
		id := rapid.Uint32Range(0, uint32(len(ggmlTypes)-1)).Filter(func(id uint32) bool { return ggmlTypes[id].Valid() }).Draw(t, "id")
		dtype := ggmlTypes[id]
		elems, _ := dtype.Block()
		shape := rapid.SliceOfN(rapid.Uint64Range(0, 3), 0, 5).Draw(t, "shape")
		if len(shape) > 0 {
			shape[len(shape)-1] *= uint64(elems)
		} else if elems > 1 {
			shape = []uint64{uint64(elems)}
		}
		ne := make([]uint64, len(shape))
		for i := range shape {
			ne[len(ne)-1-i] = shape[i]
		}
		size, err := dtype.Size(shape, false)
		if err != nil {
			t.Fatal(err)
		}
		infos = append(infos, tensor.Info{
			Name: fmt.Sprintf("t%d\x00.weight", i), DType: dtype, Shape: append([]uint64{}, shape...), Bytes: size,
			Extent: tensor.Extent{Off: off, Len: size},
			Extra:  tensor.Object{{Key: "ne", Value: ne}, {Key: "id", Value: id}},
		})
		off += size + rapid.Int64Range(0, 100).Draw(t, "gap")
		off = (off + int64(align) - 1) / int64(align) * int64(align)
	}
	return rapid.Permutation(infos).Draw(t, "order of infos")
}

func drawType(t *rapid.T, depth int) valueType {
	typ := valueType(rapid.Uint32Range(0, uint32(valueTypeEnd-1)).Draw(t, "type"))
	if typ == typeArray && depth > 3 {
		return typeString
	}
	return typ
}

// drawValue writes a value and returns it.
func drawValue(t *rapid.T, b *builder, typ valueType, depth int) any {
	switch typ {
	case typeString:
		s := string(rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "string"))
		b.str(s)
		return s
	case typeArray:
		elem := drawType(t, depth+1)
		most := 100
		if elem == typeArray {
			most = 3
		}
		n := rapid.IntRange(0, most).Draw(t, "length")
		b.array(elem, uint64(n))
		list := []any{}
		for range n {
			list = append(list, drawValue(t, b, elem, depth+1))
		}
		return list
	}
	raw := rapid.Uint64().Draw(t, "bits")
	switch valueTypes[typ].size {
	case 1:
		b.u8(uint8(raw))
	case 2:
		b.u16(uint16(raw))
	case 4:
		b.u32(uint32(raw))
	default:
		b.u64(raw)
	}
	d := (&source{r: sparse{0: binary.LittleEndian.AppendUint64(nil, raw)}, size: 8, order: binary.LittleEndian}).decoder(0)
	return d.scalar(typ)
}

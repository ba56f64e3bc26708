package torch

import (
	"fmt"
	"math/bits"

	"weightfs/format/tensor"
)

// place finds the bytes of a view in its storage, by the rules of torch's set_: nothing negative,
// and if there are elements, the last one within the storage.
func (v *view) place(id *storageID, st *storage) (tensor.Info, error) {
	e := id.elem
	if v.elem != nil {
		e = *v.elem
	}
	shape, err := v.shape()
	if err != nil {
		return tensor.Info{}, err
	}
	if !e.dtype.Valid() {
		return tensor.Info{}, &unshowable{fmt.Sprintf("weightfs has no element type for torch.%s", clip(e.name))}
	}
	info := tensor.Info{DType: e.dtype, Shape: shape, Extra: tensor.Object{{Key: "record", Value: st.name}}}
	if e.dtype.Torch() != e.name {
		info.Extra = append(info.Extra, tensor.KV{Key: "torch_dtype", Value: e.name})
	}
	if e.whole {
		return v.wholeStorage(info, e, st)
	}
	first, touched, err := v.span(shape, e.size, st)
	if err != nil {
		return tensor.Info{}, err
	}
	strided := touched > 0 && !v.contiguous()
	if e.pack > 1 {
		if strided {
			return tensor.Info{}, &unshowable{fmt.Sprintf("it is a strided view of torch.%s, which packs %d elements in a byte", e.name, e.pack)}
		}
		info.Shape = unpackLast(shape, uint64(e.pack))
	}
	if info.Bytes, err = e.dtype.Size(info.Shape, false); err != nil {
		return tensor.Info{}, &flaw{fmt.Sprintf("size %v: %v", v.size, err), tensor.ErrTooLarge}
	}
	st.put(&info, first, touched)
	if strided {
		layout(&info).Strides = v.stride
		info.Extra = append(info.Extra, tensor.KV{Key: "strides", Value: v.stride})
	}
	v.change(&info, st)
	return info, nil
}

// shape checks the sizes and strides.
func (v *view) shape() ([]uint64, error) {
	shape := make([]uint64, len(v.size))
	for i, n := range v.size {
		if n < 0 {
			return nil, malformed("negative size %d of dimension %d", n, i)
		}
		if v.stride[i] < 0 {
			return nil, malformed("negative stride %d of dimension %d", v.stride[i], i)
		}
		shape[i] = uint64(n)
	}
	if v.offset < 0 {
		return nil, malformed("negative storage offset %d", v.offset)
	}
	return shape, nil
}

// span gives the first byte in the storage and the number of bytes from there to the end of the last
// element; 0 bytes where there are no elements, wherever the view then begins.
func (v *view) span(shape []uint64, size int64, st *storage) (first, touched int64, err error) {
	n, err := tensor.Elements(shape)
	if err != nil {
		return 0, 0, &flaw{err.Error(), tensor.ErrTooLarge}
	}
	if n == 0 {
		return 0, 0, nil
	}
	last, overflow := uint64(0), uint64(0)
	for i, dim := range shape {
		hi, lo := bits.Mul64(dim-1, uint64(v.stride[i]))
		sum, carry := bits.Add64(last, lo, 0)
		last, overflow = sum, overflow|hi|carry
	}
	room := uint64(st.size / size) // whole elements of the storage
	offset := uint64(v.offset)
	if overflow != 0 || offset >= room || last >= room-offset {
		return 0, 0, malformed("size %v with strides %v from element %d leaves the storage %s of %d bytes",
			v.size, v.stride, v.offset, st.name, st.size)
	}
	return v.offset * size, int64(last+1) * size, nil
}

// contiguous is torch's rule: the stride of a dimension of one element does not count.
func (v *view) contiguous() bool {
	want := int64(1)
	for i := len(v.size) - 1; i >= 0; i-- {
		if v.size[i] == 1 {
			continue
		}
		if v.stride[i] != want {
			return false
		}
		want *= v.size[i]
	}
	return true
}

// unpackLast counts elements where torch counts units of several (float4_e2m1fn_x2): in the last
// dimension; a scalar becomes a vector.
func unpackLast(shape []uint64, pack uint64) []uint64 {
	if len(shape) == 0 {
		return []uint64{pack}
	}
	out := append([]uint64(nil), shape...)
	if hi, lo := bits.Mul64(out[len(out)-1], pack); hi == 0 {
		out[len(out)-1] = lo
	}
	return out
}

// wholeStorage shows quint4x2 and quint2x4, whose elements have no byte offsets.
func (v *view) wholeStorage(info tensor.Info, e elem, st *storage) (tensor.Info, error) {
	size, err := e.dtype.Size(info.Shape, true)
	if err != nil {
		return tensor.Info{}, &flaw{fmt.Sprintf("size %v: %v", v.size, err), tensor.ErrTooLarge}
	}
	if v.offset != 0 || !v.contiguous() {
		return tensor.Info{}, &unshowable{fmt.Sprintf("it is a view of torch.%s, which packs %d elements in a byte", e.name, e.pack)}
	}
	if size > st.size {
		return tensor.Info{}, malformed("size %v takes %d bytes, the storage %s has %d", v.size, size, st.name, st.size)
	}
	info.Bytes = size
	st.put(&info, 0, size)
	return info, nil
}

// put sets where the bytes [first, first+n) of the storage lie in the file.
func (st *storage) put(info *tensor.Info, first, n int64) {
	if st.pack == tensor.Stored {
		info.Extent = tensor.Extent{Off: st.extent.Off + st.from + first, Len: n}
		return
	}
	info.Extent = st.extent
	*layout(info) = tensor.Layout{Pack: st.pack, Unpacked: st.unpacked, Skip: st.from + first, CRC32: st.crc}
}

// change sets what is to be done to every element.
func (v *view) change(info *tensor.Info, st *storage) {
	if st.swap {
		info.Extra = append(info.Extra, tensor.KV{Key: "byteorder", Value: "big"})
	}
	if st.swap && info.DType.Word() > 1 {
		layout(info).Swap = true
	}
	if v.neg {
		layout(info).Neg = true
	}
	if v.conj && info.DType.Kind() == tensor.Complex {
		layout(info).Conj = true
	}
}

// layout is the layout of info, made when it is first needed.
func layout(info *tensor.Info) *tensor.Layout {
	if info.Layout == nil {
		info.Layout = new(tensor.Layout)
	}
	return info.Layout
}

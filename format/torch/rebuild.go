package torch

import (
	"fmt"
	"slices"
	"strings"

	"weightfs/format/tensor"
	"weightfs/format/torch/pickle"
)

// A reading is what a stub of the pickle means: a tensor with bytes, a tensor without, or an object
// that has parts.
type reading struct {
	view  *view
	none  string        // why a tensor cannot be shown
	parts []pickle.Item // what lies below its name
	note  string        // a warning: how it is shown
	extra tensor.Object
}

// A view is a tensor over a storage, in torch's terms.
type view struct {
	storage      *pickle.Persistent
	elem         *elem // nil for the storage's own
	offset       int64
	size, stride []int64
	neg, conj    bool
}

// rebuilders are the functions by which tensors are pickled: the only ones that are understood, and
// they are read, not called. The names are torch._utils' unless said otherwise.
var rebuilders map[pickle.Global]func(args []any, depth int) (reading, error)

func init() {
	plain := map[string]func(args []any, depth int) (reading, error){
		"_rebuild_tensor":                        rebuildTensor,
		"_rebuild_tensor_v2":                     rebuildTensor,
		"_rebuild_tensor_v3":                     rebuildTensorV3,
		"_rebuild_parameter":                     rebuildParameter,
		"_rebuild_parameter_with_state":          rebuildParameter,
		"_rebuild_qtensor":                       rebuildQuantized,
		"_rebuild_sparse_tensor":                 rebuildSparse,
		"_rebuild_nested_tensor":                 rebuildNested,
		"_rebuild_device_tensor_from_cpu_tensor": rebuildCopy,
		"_rebuild_device_tensor_from_numpy":      without("its elements are a NumPy array inside the pickle"),
		"_rebuild_xla_tensor":                    without("its elements are a NumPy array inside the pickle"),
		"_rebuild_meta_tensor_no_storage":        without("it is a meta tensor, of which the file has no elements"),
		"_rebuild_wrapper_subclass":              without("it is a wrapper without elements of its own"),
	}
	rebuilders = map[pickle.Global]func(args []any, depth int) (reading, error){
		// The second module is what torch.load still maps to the first.
		{Module: "torch._tensor", Name: "_rebuild_from_type_v2"}: rebuildFromType,
		{Module: "torch.tensor", Name: "_rebuild_from_type_v2"}:  rebuildFromType,
		{Module: "torch._tensor", Name: "_rebuild_from_type"}:    rebuildFromType,
		{Module: "torch.tensor", Name: "_rebuild_from_type"}:     rebuildFromType,
	}
	for name, f := range plain {
		rebuilders[pickle.Global{Module: "torch._utils", Name: name}] = f
	}
}

// opaque tells the pickle machine what takes no items.
func opaque(g pickle.Global) string {
	if _, ok := rebuilders[g]; ok {
		return "a tensor"
	}
	return ""
}

// maxWrap bounds how many functions wrap one tensor (a parameter of a subclass of a view: three).
const maxWrap = 16

// read finds what a stub means.
func read(o *pickle.Object, depth int) (reading, error) {
	if depth > maxWrap {
		return reading{}, malformed("a tensor is wrapped more than the limit of %d times", maxWrap)
	}
	g, _ := o.Class.(pickle.Global)
	if f, ok := rebuilders[g]; ok {
		return f(o.Args.Items, depth)
	}
	switch {
	case g.Module == "torch.nn.parameter" && strings.HasPrefix(g.Name, "Uninitialized"):
		return reading{none: "it was saved before it had a shape"}, nil
	case g.Module == "torch.nn.parameter" || strings.HasPrefix(g.Module, "torch.autograd"):
		if len(o.Args.Items) > 0 {
			return rebuildParameter(o.Args.Items, depth)
		}
	case isTorch(g) && strings.HasSuffix(g.Name, "Tensor") && len(o.States) > 0:
		if state, ok := o.States[0].(*pickle.Tuple); ok && len(state.Items) == 4 {
			return rebuildTensor(state.Items, depth)
		}
	}
	return reading{parts: children(o)}, nil
}

func without(why string) func([]any, int) (reading, error) {
	return func([]any, int) (reading, error) { return reading{none: why}, nil }
}

// rebuildTensor takes (storage, offset, size, stride[, requires_grad, hooks[, metadata]]).
func rebuildTensor(args []any, _ int) (reading, error) {
	v, err := newView(args)
	if err == nil && len(args) > 6 {
		v.metadata(args[6])
	}
	return reading{view: v}, err
}

// rebuildTensorV3 has the element type before the metadata; its storage is untyped.
func rebuildTensorV3(args []any, _ int) (reading, error) {
	v, err := newView(args)
	if err != nil {
		return reading{}, err
	}
	if len(args) < 7 {
		return reading{}, malformed("_rebuild_tensor_v3 of %d arguments, it takes 7", len(args))
	}
	e, ok := dtypeElem(args[6])
	if !ok {
		return reading{}, malformed("the dtype is %s", pickle.AppendStr(nil, args[6]))
	}
	v.elem = &e
	if len(args) > 7 {
		v.metadata(args[7])
	}
	return reading{view: v}, nil
}

func newView(args []any) (*view, error) {
	if len(args) < 4 {
		return nil, malformed("a tensor of %d arguments, it takes 4", len(args))
	}
	storage, ok := args[0].(*pickle.Persistent)
	if !ok {
		return nil, malformed("the storage is %s", pickle.AppendStr(nil, args[0]))
	}
	v := &view{storage: storage}
	var err error
	if v.offset, err = integer(args[1], "the storage offset"); err != nil {
		return nil, err
	}
	if v.size, err = integers(args[2], "size"); err != nil {
		return nil, err
	}
	if v.stride, err = integers(args[3], "stride"); err != nil {
		return nil, err
	}
	if len(v.size) != len(v.stride) {
		return nil, malformed("%d sizes with %d strides", len(v.size), len(v.stride))
	}
	return v, nil
}

// metadata takes {'neg': True} and {'conj': True}: the stored elements are not yet the values.
func (v *view) metadata(arg any) {
	if d, ok := arg.(*pickle.Dict); ok {
		v.neg, v.conj = d.Get("neg") == true, d.Get("conj") == true
	}
}

// rebuildParameter takes (data, requires_grad, …[, state]) and is the data.
func rebuildParameter(args []any, depth int) (reading, error) {
	if len(args) == 0 {
		return reading{}, malformed("a parameter without data")
	}
	o, ok := args[0].(*pickle.Object)
	if !ok {
		return reading{none: fmt.Sprintf("it is made of %s", pickle.AppendStr(nil, args[0]))}, nil
	}
	r, err := read(o, depth+1)
	if err == nil && len(args) > 3 {
		r.parts = slices.Concat(r.parts, attributes(args[3]))
	}
	return r, err
}

// rebuildCopy takes (data, dtype, device, requires_grad): a tensor of a device that has no storages.
func rebuildCopy(args []any, depth int) (reading, error) {
	return rebuildParameter(args[:min(1, len(args))], depth)
}

// rebuildFromType takes (function, class, its arguments, state): a subclass, or a tensor with
// attributes, which may be tensors themselves.
func rebuildFromType(args []any, depth int) (reading, error) {
	if len(args) < 4 {
		return reading{}, malformed("a subclass of %d arguments, it takes 4", len(args))
	}
	inner, ok := args[2].(*pickle.Tuple)
	if !ok {
		return reading{}, malformed("the arguments of a subclass are %s, no tuple", pickle.AppendStr(nil, args[2]))
	}
	r, err := read(&pickle.Object{Class: args[0], Args: inner}, depth+1)
	if err != nil {
		return r, err
	}
	if g, ok := args[1].(pickle.Global); ok && g != (pickle.Global{Module: "torch", Name: "Tensor"}) {
		r.extra = append(r.extra, tensor.KV{Key: "class", Value: clip(g.String())})
	}
	r.parts = slices.Concat(r.parts, attributes(args[3]))
	return r, nil
}

// rebuildQuantized takes (storage, offset, size, stride, quantizer, …). What is shown are the codes;
// the value is scale * (code - zero_point).
func rebuildQuantized(args []any, _ int) (reading, error) {
	v, err := newView(args)
	if err != nil {
		return reading{}, err
	}
	if len(args) < 5 {
		return reading{}, malformed("a quantised tensor of %d arguments, it takes 5", len(args))
	}
	r := reading{view: v}
	q, ok := args[4].(*pickle.Tuple)
	if !ok || len(q.Items) < 3 {
		return reading{}, malformed("the quantizer is %s", pickle.AppendStr(nil, args[4]))
	}
	scheme, _ := q.Items[0].(pickle.Global)
	r.extra = tensor.Object{{Key: "quantizer", Value: clip(scheme.Name)}}
	if len(q.Items) == 3 {
		r.extra = append(r.extra, tensor.KV{Key: "scale", Value: plain(q.Items[1])}, tensor.KV{Key: "zero_point", Value: plain(q.Items[2])})
		return r, nil
	}
	r.extra = append(r.extra, tensor.KV{Key: "axis", Value: plain(q.Items[3])})
	r.parts = []pickle.Item{{Key: "scales", Value: q.Items[1]}, {Key: "zero_points", Value: q.Items[2]}}
	r.note = "is quantised per channel: its codes are shown, with the scales and zero points as tensors below its name"
	return r, nil
}

// The components of the sparse layouts, without the values and what follows.
var sparseLayouts = map[string][]string{
	"torch.sparse_coo": {"indices", "values"},
	"torch.sparse_csr": {"crow_indices", "col_indices", "values"},
	"torch.sparse_bsr": {"crow_indices", "col_indices", "values"},
	"torch.sparse_csc": {"ccol_indices", "row_indices", "values"},
	"torch.sparse_bsc": {"ccol_indices", "row_indices", "values"},
}

// rebuildSparse takes (layout, (components…, size[, is_coalesced])). The components are shown.
func rebuildSparse(args []any, _ int) (reading, error) {
	if len(args) < 2 {
		return reading{}, malformed("a sparse tensor of %d arguments, it takes 2", len(args))
	}
	layout := string(pickle.AppendStr(nil, args[0]))
	if o, ok := args[0].(*pickle.Object); ok && o.Is("torch.serialization", "_get_layout") && len(o.Args.Items) == 1 {
		layout = text(o.Args.Items[0])
	}
	names, ok := sparseLayouts[layout]
	data, isTuple := args[1].(*pickle.Tuple)
	if !ok || !isTuple || len(data.Items) <= len(names) {
		return reading{none: fmt.Sprintf("it is sparse, of the layout %s, which is not known", clip(layout))}, nil
	}
	var parts []pickle.Item
	for i, name := range names {
		parts = append(parts, pickle.Item{Key: name, Value: data.Items[i]})
	}
	return reading{parts: parts, note: fmt.Sprintf("is sparse (%s of size %s): its %s are shown as tensors below its name",
		layout, pickle.AppendStr(nil, data.Items[len(names)]), strings.Join(names, ", "))}, nil
}

// rebuildNested takes (buffer, sizes, strides, storage offsets).
func rebuildNested(args []any, _ int) (reading, error) {
	names := []string{"buffer", "sizes", "strides", "storage_offsets"}
	if len(args) < len(names) {
		return reading{none: "it is nested, in a way that is not known"}, nil
	}
	var parts []pickle.Item
	for i, name := range names {
		parts = append(parts, pickle.Item{Key: name, Value: args[i]})
	}
	return reading{parts: parts, note: "is nested: its " + strings.Join(names, ", ") + " are shown as tensors below its name"}, nil
}

package torch

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"weightfs/format/tensor"
	"weightfs/format/torch/pickle"
)

const (
	// maxVisits bounds the paths through the pickle's values, which references to one list can
	// double with every opcode; a pickle of few opcodes may have minVisits and maxShare for each.
	maxVisits, minVisits, maxShare = 1 << 24, 1 << 16, 64
	// keyPerVisit is how many bytes of a key take as long as a visit.
	keyPerVisit = 1 << 10
	// maxTensors bounds the tensors of one file.
	maxTensors = 1 << 20
	// maxName is the longest name, maxNames bounds all names together. maxPath is the longest path
	// below which tensors are looked for.
	maxName  = 64 << 10
	maxNames = 1 << 28
	maxPath  = 1 << 20
)

// A walk finds the tensors below the root of a pickle and names them by their path.
type walk struct {
	h    *tensor.Header
	find func(*storageID) (*storage, error)

	path    []byte
	frames  []frame
	on      map[any]bool // the containers of frames, to end at a cycle
	names   map[string]int
	visits  int // that are left
	letters int // of all names
}

// A frame is a container whose children are being visited. Frames are a list and not Go's stack, so
// that the depth of a pickle is bounded by its size alone.
type frame struct {
	node  any
	items []pickle.Item // of a dict or an object
	list  []any         // of a list, tuple or set
	next  int
	path  int // length of the container's own path
}

// findTensors visits all paths of a pickle in the order of the file, and then its plain values.
func findTensors(h *tensor.Header, p *pickle.Pickle, find func(*storageID) (*storage, error)) error {
	w := &walk{h: h, find: find, on: make(map[any]bool), names: make(map[string]int), visits: min(maxVisits, minVisits+maxShare*p.Ops)}
	h.Tensors = make([]tensor.Info, 0, min(len(p.Persistent), 1<<16))
	if err := w.tensors(p.Root); err != nil {
		return err
	}
	h.Meta = metadata(p.Root)
	return nil
}

func (w *walk) tensors(root any) error {
	err := w.visit(root)
	for err == nil && len(w.frames) > 0 {
		f := &w.frames[len(w.frames)-1]
		if f.next == len(f.items)+len(f.list) {
			w.leave(f)
			continue
		}
		err = w.visit(w.step(f))
	}
	return err
}

// step takes the next child, and moves the path to it unless it is a plain value.
func (w *walk) step(f *frame) any {
	i := f.next
	f.next++
	var v any
	if i < len(f.items) {
		v = f.items[i].Value
	} else {
		v = f.list[i-len(f.items)]
	}
	switch v.(type) {
	case nil, bool, int64, float64, string:
		return nil
	}
	w.path = w.path[:f.path]
	if len(w.frames) > 1 {
		w.path = append(w.path, '.')
	}
	if i < len(f.items) {
		w.path = pickle.AppendStr(w.path, f.items[i].Key)
	} else {
		w.path = strconv.AppendInt(w.path, int64(i-len(f.items)), 10)
	}
	w.visits -= (len(w.path) - f.path) / keyPerVisit
	return v
}

func (w *walk) leave(f *frame) {
	delete(w.on, f.node)
	*f = frame{}
	w.frames = w.frames[:len(w.frames)-1]
}

func (w *walk) visit(v any) error {
	if w.visits--; w.visits < 0 {
		return w.report(-1, unsafe("more paths through the pickle's values than the limit of %d, or of %d and %d for each opcode",
			maxVisits, minVisits, maxShare))
	}
	switch v := v.(type) {
	case *pickle.Dict:
		return w.enter(v, v.Items, nil)
	case *pickle.List:
		return w.enter(v, nil, v.Items)
	case *pickle.Tuple:
		return w.enter(v, nil, v.Items)
	case *pickle.Set:
		return w.enter(v, nil, v.Items)
	case *pickle.Persistent:
		return w.storage(v)
	case *pickle.Object:
		return w.object(v)
	}
	return nil
}

// enter begins with a container, unless it is inside itself.
func (w *walk) enter(node any, items []pickle.Item, list []any) error {
	if len(items)+len(list) == 0 || w.on[node] {
		return nil
	}
	if len(w.path) > maxPath {
		return w.report(-1, unsafe("a path of %d bytes exceeds the limit of %d", len(w.path), maxPath))
	}
	w.on[node] = true
	w.frames = append(w.frames, frame{node: node, items: items, list: list, path: len(w.path)})
	return nil
}

// object shows what a stub means.
func (w *walk) object(o *pickle.Object) error {
	if w.on[o] {
		return nil
	}
	r, err := read(o, 0)
	if err == nil && r.view != nil {
		err = w.tensor(r)
	}
	if err = w.report(o.Off, err); err != nil {
		return err
	}
	if r.none != "" {
		w.warn("cannot be shown: %s", r.none)
	}
	if r.note != "" {
		w.warn("%s", r.note)
	}
	return w.enter(o, r.parts, nil)
}

// storage shows a storage that was saved by itself.
func (w *walk) storage(p *pickle.Persistent) error {
	if !isStorage(p) {
		return nil
	}
	id, err := parseID(p)
	if err == nil {
		n := id.numel
		if id.view {
			n = id.count
		}
		err = w.tensor(reading{view: &view{storage: p, size: []int64{n}, stride: []int64{1}}})
	}
	return w.report(p.Off, err)
}

// tensor adds a tensor to the header.
func (w *walk) tensor(r reading) error {
	if len(w.h.Tensors) == maxTensors {
		return unsafe("more tensors than the limit of %d", maxTensors)
	}
	if w.letters += len(w.path); len(w.path) > maxName || w.letters > maxNames {
		return unsafe("a name of %d bytes exceeds the limit of %d, or of %d for all names together", len(w.path), maxName, maxNames)
	}
	info, err := w.info(r)
	if err != nil {
		return err
	}
	info.Name = w.unique(string(w.path))
	w.h.Tensors = append(w.h.Tensors, info)
	return nil
}

// unique numbers a name that is taken: {"a.b": x, "a": {"b": y}} has two tensors a.b.
func (w *walk) unique(name string) string {
	n := w.names[name]
	w.names[name]++
	if n == 0 {
		return name
	}
	for {
		n++
		numbered := name + "~" + strconv.Itoa(n)
		if w.names[numbered] == 0 {
			w.names[name], w.names[numbered] = n, 1
			w.warn("is the second tensor of that path: it is called %q", clip(numbered))
			return numbered
		}
	}
}

// warn says something of the tensor at the path.
func (w *walk) warn(format string, a ...any) {
	w.h.Warn("tensor %q %s", clip(string(w.path)), fmt.Sprintf(format, a...))
}

// report turns what is wrong with a value into a warning where weightfs has no way to show it, else
// into a fault of the file, with the tensor's name.
func (w *walk) report(off int64, err error) error {
	if err == nil {
		return nil
	}
	if none, ok := errors.AsType[*unshowable](err); ok {
		w.warn("cannot be shown: %s", none.why)
		return nil
	}
	if _, ok := errors.AsType[*tensor.FormatError](err); ok {
		return err
	}
	e := fault(off, nil, "%s", err.Error())
	e.Err, e.Tensor = errors.Unwrap(err), clip(string(w.path))
	return e
}

// info finds the elements of a view in the file.
func (w *walk) info(r reading) (tensor.Info, error) {
	id, err := parseID(r.view.storage)
	if err != nil {
		return tensor.Info{}, err
	}
	st, err := w.find(&id)
	if err != nil {
		return tensor.Info{}, err
	}
	info, err := r.view.place(&id, st)
	info.Extra = slices.Concat(info.Extra, r.extra)
	return info, err
}

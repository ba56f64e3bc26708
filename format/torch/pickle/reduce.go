package pickle

import (
	"slices"

	"weightfs/format/tensor"
)

// The globals whose results are plain data, each made here and not by Python.
var constructors = map[Global]func(m *machine, args []any){
	{"collections", "OrderedDict"}: (*machine).newDict,
	{"collections", "Counter"}:     (*machine).newDict,
	{"collections", "defaultdict"}: (*machine).newDefaultDict,
	{"builtins", "dict"}:           (*machine).newDict,
	{"builtins", "list"}:           (*machine).newList,
	{"builtins", "tuple"}:          (*machine).newTuple,
	{"builtins", "set"}:            func(m *machine, args []any) { m.newSet(args, false) },
	{"builtins", "frozenset"}:      func(m *machine, args []any) { m.newSet(args, true) },
	{"builtins", "bytes"}:          (*machine).newBytes,
	{"builtins", "bytearray"}:      (*machine).newBytes,
	{"_codecs", "encode"}:          (*machine).newBytes,
	{"copyreg", "_reconstructor"}:  (*machine).reconstruct,
	{"copyreg", "__newobj__"}:      (*machine).reconstruct,
	{"copyreg", "__newobj_ex__"}:   (*machine).reconstruct,
}

// reduce stands for a call.
func (m *machine) reduce() {
	args, ok := m.pop().(*Tuple)
	fn := m.pop()
	switch {
	case m.failed():
	case !ok:
		m.malformed("the arguments are no tuple")
	default:
		m.call(fn, args)
	}
}

func (m *machine) call(fn any, args *Tuple) {
	g, _ := fn.(Global)
	if construct, ok := constructors[g]; ok {
		construct(m, args.Items)
		return
	}
	m.object(fn, args)
}

// object pushes a stub.
func (m *machine) object(class any, args *Tuple) {
	switch class.(type) {
	case Global, *Persistent, *Object:
	default:
		m.malformed("%s cannot be called", kind(class))
		return
	}
	m.charge(120)
	m.push(&Object{Class: class, Args: args, Off: m.off})
}

func (m *machine) newObj() {
	args, ok := m.pop().(*Tuple)
	class := m.pop()
	if m.failed() {
		return
	}
	if !ok {
		m.malformed("the arguments are no tuple")
		return
	}
	m.instance(class, args)
}

// instance is what class.__new__ makes: for a dict or list an empty one, whatever the arguments.
func (m *machine) instance(class any, args *Tuple) {
	switch class {
	case Global{"collections", "OrderedDict"}, Global{"collections", "Counter"},
		Global{"collections", "defaultdict"}, Global{"builtins", "dict"}:
		m.newDict(nil)
	case Global{"builtins", "list"}:
		m.newList(nil)
	default:
		m.object(class, args)
	}
}

func (m *machine) newObjEx() {
	kwargs, kwOK := m.pop().(*Dict)
	args, ok := m.pop().(*Tuple)
	class := m.pop()
	if m.failed() {
		return
	}
	if !ok || !kwOK {
		m.malformed("the arguments are no tuple and dict")
		return
	}
	m.object(class, args)
	if o, ok := m.top().(*Object); ok && len(kwargs.Items) > 0 {
		o.States = append(o.States, kwargs)
	}
}

// reconstruct is copyreg's way to spell NEWOBJ.
func (m *machine) reconstruct(args []any) {
	if len(args) == 0 {
		m.malformed("copyreg without a class")
		return
	}
	m.charge(24)
	m.instance(args[0], &Tuple{Items: args[1:]})
}

// build gives an object its state. What the collections keep as attributes (_metadata of a state
// dict) is not needed.
func (m *machine) build() {
	state := m.pop()
	switch inst := m.top().(type) {
	case *Object:
		if m.takesState(inst) {
			m.charge(16)
			inst.States = append(inst.States, state)
		}
	case *Dict:
		if !inst.attrs {
			m.malformed("a dict takes no state")
		}
	default:
		m.malformed("%s takes no state", kind(inst))
	}
}

// takesState refuses what is a value of its own, a tensor say.
func (m *machine) takesState(o *Object) bool {
	g, ok := o.Class.(Global)
	if !ok {
		return true
	}
	if what := m.opaque(g); what != "" {
		m.fail(tensor.ErrMalformed, "opcode %s on %s, as %s makes it", m.op.name, what, g)
		return false
	}
	return true
}

func (m *machine) setItem() {
	value := m.pop()
	m.setItems([]any{m.pop(), value})
}

func (m *machine) setItems(items []any) {
	target := m.top()
	if m.failed() {
		return
	}
	if len(items)%2 != 0 {
		m.malformed("a key without a value")
		return
	}
	m.charge(48 * int64(len(items)))
	switch t := target.(type) {
	case *Dict:
		for i := 0; i < len(items) && !m.failed(); i += 2 {
			m.setKey(t, items[i], items[i+1])
		}
	case *Object:
		if m.takesState(t) {
			for i := 0; i < len(items); i += 2 {
				t.Pairs = append(t.Pairs, Item{items[i], items[i+1]})
			}
		}
	default:
		m.malformed("%s has no keys to set", kind(target))
	}
}

func (m *machine) setKey(d *Dict, key, value any) {
	h, err := hash(key)
	if err != nil {
		m.malformed("%v", err)
		return
	}
	if written, ok := h.(composite); ok {
		m.charge(hashCost * int64(len(written)))
	}
	d.set(h, key, value)
}

func (m *machine) extend(items []any) {
	m.charge(24 * int64(len(items)))
	if m.failed() {
		return
	}
	switch t := m.top().(type) {
	case *List:
		t.Items = append(t.Items, items...)
	case *Object:
		if m.takesState(t) {
			t.Items = append(t.Items, items...)
		}
	default:
		m.malformed("%s is no list to append to", kind(t))
	}
}

func (m *machine) addItems(items []any) {
	m.charge(24 * int64(len(items)))
	if m.failed() {
		return
	}
	switch t := m.top().(type) {
	case *Set:
		if t.Frozen {
			m.malformed("a frozenset cannot change")
			return
		}
		t.Items = append(t.Items, items...)
	case *Object:
		if m.takesState(t) {
			t.Items = append(t.Items, items...)
		}
	default:
		m.malformed("%s is no set to add to", kind(t))
	}
}

// newDict makes a dict of nothing, of another dict, or of pairs (as Python 2 pickles an OrderedDict).
func (m *machine) newDict(args []any) {
	m.charge(64)
	d := &Dict{attrs: true}
	m.push(d)
	if len(args) == 0 {
		return
	}
	var pairs []any
	switch from := args[0].(type) {
	case *Dict:
		for _, item := range from.Items {
			pairs = append(pairs, item.Key, item.Value)
		}
	case *List, *Tuple:
		for _, p := range itemsOf(from) {
			if two := itemsOf(p); len(two) == 2 {
				pairs = append(pairs, two...)
				continue
			}
			m.malformed("a dict made of something other than pairs")
			return
		}
	default:
		m.malformed("a dict made of %s", kind(from))
		return
	}
	m.setItems(pairs)
}

// newDefaultDict leaves out the factory.
func (m *machine) newDefaultDict(args []any) { m.newDict(args[min(1, len(args)):]) }

// itemsOf gives the items of a list, tuple or set, nil for all else.
func itemsOf(v any) []any {
	switch v := v.(type) {
	case *List:
		return v.Items
	case *Tuple:
		return v.Items
	case *Set:
		return v.Items
	}
	return nil
}

// sequence gives the items that a list, tuple or set is made of, charged for a copy of them.
func (m *machine) sequence(args []any) []any {
	if len(args) == 0 {
		m.charge(48)
		return nil
	}
	switch args[0].(type) {
	case *List, *Tuple, *Set:
	default:
		m.malformed("a sequence made of %s", kind(args[0]))
	}
	items := itemsOf(args[0])
	m.charge(48 + 16*int64(len(items)))
	if m.failed() {
		return nil
	}
	return slices.Clone(items)
}

func (m *machine) newList(args []any)  { m.push(&List{Items: m.sequence(args)}) }
func (m *machine) newTuple(args []any) { m.push(&Tuple{Items: m.sequence(args)}) }
func (m *machine) newSet(args []any, frozen bool) {
	m.push(&Set{Items: m.sequence(args), Frozen: frozen})
}

// newBytes makes bytes of bytes, or of a str that holds one byte in each character: protocol 2 has
// no bytes, and writes them so.
func (m *machine) newBytes(args []any) {
	if len(args) == 0 {
		m.push(Bytes(""))
		return
	}
	switch v := args[0].(type) {
	case Bytes, Long:
		m.push(v)
	case string:
		m.charge(32 + int64(len(v)))
		if m.failed() {
			return
		}
		b := make([]byte, 0, len(v))
		for _, r := range v {
			if r > 0xff {
				m.malformed("a str with %q is no latin-1", r)
				return
			}
			b = append(b, byte(r))
		}
		m.push(Bytes(b))
	default:
		m.malformed("bytes made of %s", kind(v))
	}
}

package torch

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"

	"weightfs/format/tensor"
	"weightfs/format/torch/pickle"
)

const (
	maxMetaValues = 1 << 16 // of one file; every 64 bytes of a string count as one
	maxMetaDepth  = 32
	maxMetaString = 4 << 10
	maxMetaBytes  = 64
)

// metadata gives the values of a pickle that are no tensors (epochs, hyper-parameters, the arguments
// of an optimizer) as JSON values. It is bounded: what lies deeper or comes later is left out.
func metadata(root any) tensor.Object {
	m := meta{left: maxMetaValues, on: make(map[any]bool)}
	v, ok := m.value(root, 0)
	if o, isObject := v.(tensor.Object); ok && isObject {
		return o
	}
	if ok && v != nil {
		return tensor.Object{{Key: "value", Value: v}}
	}
	return nil
}

type meta struct {
	left int
	on   map[any]bool // the containers that hold what is being converted
}

// value converts a value; false where it holds tensors and nothing else.
func (m *meta) value(v any, depth int) (any, bool) {
	if m.left < 0 || depth > maxMetaDepth || m.on[v] {
		return "…", true
	}
	switch v.(type) {
	case *pickle.Dict, *pickle.List, *pickle.Tuple, *pickle.Set, *pickle.Persistent, *pickle.Object:
		m.on[v] = true
		defer delete(m.on, v)
		return m.container(v, depth)
	}
	return m.charge(plain(v)), true
}

// charge counts a value that is kept.
func (m *meta) charge(v any) any {
	m.left--
	if s, ok := v.(string); ok {
		m.left -= len(s) / 64
	}
	return v
}

func (m *meta) container(v any, depth int) (any, bool) {
	switch v := v.(type) {
	case *pickle.Dict:
		o := m.items(v.Items, depth)
		return o, len(o) > 0 || len(v.Items) == 0
	case *pickle.List:
		return m.list(v.Items, depth)
	case *pickle.Tuple:
		return m.list(v.Items, depth)
	case *pickle.Set:
		return m.list(v.Items, depth)
	case *pickle.Object:
		return m.object(v, depth)
	}
	return nil, false
}

func (m *meta) items(items []pickle.Item, depth int) tensor.Object {
	var o tensor.Object
	for _, item := range items {
		if m.left < 0 {
			break
		}
		if v, ok := m.value(item.Value, depth+1); ok {
			key := cut(string(pickle.AppendStr(nil, item.Key)))
			m.charge(key)
			o = append(o, tensor.KV{Key: key, Value: v})
		}
	}
	return o
}

// list keeps the positions: an item that holds tensors only is null.
func (m *meta) list(items []any, depth int) (any, bool) {
	out, some := []any{}, len(items) == 0
	for _, item := range items {
		if m.left < 0 {
			break
		}
		v, ok := m.value(item, depth+1)
		out, some = append(out, v), some || ok
		m.left--
	}
	return out, some
}

// object shows the attributes of a stub, or the call that makes it where it has none.
func (m *meta) object(o *pickle.Object, depth int) (any, bool) {
	if r, err := read(o, 0); err != nil || r.view != nil || r.none != "" || r.note != "" {
		return nil, false
	}
	if v, ok := numpyValue(o); ok {
		return m.charge(v), true
	}
	fields := m.items(public(o), depth)
	if len(fields) > 0 {
		return append(tensor.Object{{Key: "class", Value: m.charge(className(o))}}, fields...), true
	}
	if len(o.States)+len(o.Items)+len(o.Pairs) > 0 && len(o.Args.Items) == 0 {
		return nil, false
	}
	call := cut(string(pickle.AppendStr(nil, o)))
	return m.charge(call), !strings.Contains(call, "<persistent>")
}

// public are the attributes and items of an object, without the hooks and other internals that every
// torch.nn.Module has.
func public(o *pickle.Object) []pickle.Item {
	items := children(&pickle.Object{Args: &pickle.Tuple{}, States: o.States, Items: o.Items, Pairs: o.Pairs})
	if len(o.States) == 0 {
		return items
	}
	if state, ok := o.States[0].(*pickle.Dict); !ok || !isModule(state) {
		return items
	}
	return slices.DeleteFunc(items, func(item pickle.Item) bool {
		key, ok := item.Key.(string)
		return ok && strings.HasPrefix(key, "_")
	})
}

// className is the dotted name of an object's class. The legacy format keeps classes of modules, with
// their source, as persistent objects.
func className(o *pickle.Object) string {
	class := o.Class
	if p, ok := class.(*pickle.Persistent); ok {
		if t, ok := p.ID.(*pickle.Tuple); ok && len(t.Items) > 1 && text(t.Items[0]) == "module" {
			class = t.Items[1]
		}
	}
	return cut(string(pickle.AppendStr(nil, class)))
}

// plain converts a value that has no parts; others become Python's repr, cut short.
func plain(v any) any {
	switch v := v.(type) {
	case nil, bool, int64, float64, *big.Int:
		return v
	case string:
		return cut(v)
	case pickle.Bytes:
		if len(v) > maxMetaBytes {
			return fmt.Sprintf("<%d bytes>", len(v))
		}
	}
	return cut(string(pickle.AppendStr(nil, v)))
}

// cut shortens a string to maxMetaString bytes.
func cut(s string) string {
	if len(s) <= maxMetaString {
		return s
	}
	at := maxMetaString
	for at > 0 && !utf8.RuneStart(s[at]) {
		at--
	}
	return s[:at] + "…"
}

package torch

import (
	"slices"

	"weightfs/format/torch/pickle"
)

// children are what an object of an unknown class holds: positional arguments, attributes, items.
func children(o *pickle.Object) []pickle.Item {
	var items []pickle.Item
	for i, arg := range o.Args.Items {
		items = append(items, pickle.Item{Key: int64(i), Value: arg})
	}
	for _, state := range o.States {
		items = append(items, attributes(state)...)
	}
	for i, item := range o.Items {
		items = append(items, pickle.Item{Key: int64(i), Value: item})
	}
	return append(items, o.Pairs...)
}

// attributes are what the state of an object sets: a dict, a pair of dicts where the class has
// slots, or anything else that its class knows how to read.
func attributes(state any) []pickle.Item {
	switch s := state.(type) {
	case nil:
		return nil
	case *pickle.Dict:
		return flatten(s)
	case *pickle.Tuple:
		if len(s.Items) != 2 {
			break
		}
		_, isDict := s.Items[0].(*pickle.Dict)
		if slots, ok := s.Items[1].(*pickle.Dict); ok && (isDict || s.Items[0] == nil) {
			return slices.Concat(attributes(s.Items[0]), slots.Items)
		}
	}
	return []pickle.Item{{Key: "state", Value: state}}
}

// flatten takes the layer of _parameters, _buffers and _modules out of a torch.nn.Module, so that
// names are those of its state dict.
func flatten(state *pickle.Dict) []pickle.Item {
	if !isModule(state) {
		return state.Items
	}
	var items []pickle.Item
	for _, item := range state.Items {
		inner, ok := item.Value.(*pickle.Dict)
		if ok && (item.Key == "_parameters" || item.Key == "_buffers" || item.Key == "_modules") {
			items = append(items, inner.Items...)
			continue
		}
		if item.Key == "_flat_weights" { // torch.nn.RNNBase lists its own parameters here
			continue
		}
		items = append(items, item)
	}
	return items
}

func isModule(state *pickle.Dict) bool {
	_, ok := state.Get("_parameters").(*pickle.Dict)
	return ok && state.Has("_modules")
}

package torch

import "weightfs/format/torch/pickle"

// text is a str, or the bytes that Python 2 wrote for one; an int in decimal.
func text(v any) string {
	if b, ok := v.(pickle.Bytes); ok {
		return string(b)
	}
	switch v.(type) {
	case string, int64:
		return string(pickle.AppendStr(nil, v))
	}
	return ""
}

// integer takes an int of 64 bits.
func integer(v any, what string) (int64, error) {
	switch v := v.(type) {
	case int64:
		return v, nil
	case bool:
		if v {
			return 1, nil
		}
		return 0, nil
	}
	return 0, malformed("%s is %s, no int of 64 bits", what, pickle.AppendStr(nil, v))
}

// integers takes a tuple, a list or a torch.Size of ints.
func integers(v any, what string) ([]int64, error) {
	items, ok := sequence(v)
	if !ok {
		return nil, malformed("the %s is %s, no tuple", what, pickle.AppendStr(nil, v))
	}
	out := make([]int64, len(items))
	for i, item := range items {
		var err error
		if out[i], err = integer(item, what); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// sequence gives the items of a tuple, a list or a torch.Size.
func sequence(v any) ([]any, bool) {
	switch v := v.(type) {
	case *pickle.Tuple:
		return v.Items, true
	case *pickle.List:
		return v.Items, true
	case *pickle.Object:
		if v.Is("torch", "Size") && len(v.Args.Items) == 1 {
			if _, nested := v.Args.Items[0].(*pickle.Object); !nested {
				return sequence(v.Args.Items[0])
			}
		}
	}
	return nil, false
}

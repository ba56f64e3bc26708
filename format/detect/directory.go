package detect

import (
	"path"
	"slices"
	"strings"
)

// A layout is a kind of directory, given away by names in it: one of each group must be there.
// Names are patterns of path.Match.
type layout struct {
	groups     [][]string
	what, hint string
}

var layouts = []layout{
	{[][]string{{"_CHECKPOINT_METADATA", "manifest.ocdbt", "_METADATA", "ocdbt.process_*"}},
		"an Orbax checkpoint (compressed chunks in an OCDBT or Zarr store)", "load it in JAX and save it as safetensors"},
	{[][]string{{".metadata"}, {"*.distcp"}},
		"a PyTorch distributed checkpoint (DCP)", fromDCP},
	{[][]string{{"*.distcp"}},
		"a PyTorch distributed checkpoint (DCP) without its .metadata", fetchIt},
	{[][]string{{"saved_model.pb", "saved_model.pbtxt"}},
		"a TensorFlow SavedModel", "load it in TensorFlow and save the arrays"},
	{[][]string{{"*.index"}, {"*.data-00000-of-*"}},
		"a TensorFlow checkpoint", "load it in TensorFlow and save the arrays"},
	{[][]string{{"zero_to_fp32.py", "*_optim_states.pt", "mp_rank_*_model_states.pt", "global_step*"}},
		"a DeepSpeed checkpoint", "its zero_to_fp32.py makes one file of it; a single *_model_states.pt can be given by name"},
	{[][]string{{"latest_checkpointed_iteration.txt", "common.pt", "mp_rank_[0-9]*"}},
		"a Megatron checkpoint", "convert it with Megatron's tools, or give one of its .pt files by name"},
	{[][]string{{".zgroup", ".zarray", ".zmetadata", "zarr.json"}},
		"a Zarr store", ""},
	{[][]string{{"Manifest.json"}, {"Data"}},
		"a Core ML package", ""},
	{[][]string{{"model.json"}, {"group*-shard*of*.bin", "group*-shard*of*"}},
		"a TensorFlow.js model", ""},
}

// Directory recognises a directory by the names of its entries, with or without a slash behind those
// of directories: a *tensor.FormatError says what it is; nil where it is nothing known. It is meant
// for directories in which no checkpoint was found.
func Directory(names []string) error {
	for _, l := range layouts {
		if !slices.ContainsFunc(l.groups, func(group []string) bool { return !anyMatches(group, names) }) {
			return known{what: l.what, hint: l.hint}.fault()
		}
	}
	return nil
}

func anyMatches(patterns, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		name = strings.TrimSuffix(name, "/")
		return slices.ContainsFunc(patterns, func(pattern string) bool {
			ok, _ := path.Match(pattern, name)
			return ok
		})
	})
}

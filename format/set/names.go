package set

import (
	"path/filepath"
	"slices"
	"strings"
)

// A family is the file names of one kind of checkpoint. A directory is asked for each in order.
type family struct {
	exts  []string // lower case
	stems []string // the names that loaders look for, best first
	index bool     // whether sets of it have an index
}

var families = []*family{
	{exts: []string{".safetensors"}, stems: []string{"model", "diffusion_pytorch_model", "adapter_model"}, index: true},
	{exts: []string{".bin", ".pt", ".pth", ".ckpt"}, stems: []string{"pytorch_model", "diffusion_pytorch_model", "adapter_model"}, index: true},
	{exts: []string{".gguf"}},
	{exts: []string{".npz", ".npy", ".onnx"}},
}

// torch is the family whose extensions mean many other things.
var torch = families[1]

func familyOf(name string) *family {
	ext := strings.ToLower(filepath.Ext(name))
	for _, f := range families {
		if slices.Contains(f.exts, ext) {
			return f
		}
	}
	return nil
}

// otherWeights are extensions of weights that are not read: no side files of a model either.
var otherWeights = []string{".h5", ".hdf5", ".keras", ".msgpack", ".tflite", ".ggml", ".llamafile", ".onnx_data", ".data",
	".pb", ".ot", ".nemo", ".mlmodel", ".engine", ".distcp", ".pte", ".pkl", ".tar", ".zip",
	".incomplete", ".part", ".partial", ".crdownload", ".aria2", ".lock", ".tmp"}

func isWeights(name string) bool {
	return familyOf(name) != nil || slices.Contains(otherWeights, strings.ToLower(filepath.Ext(name)))
}

// state names a trainer's files: pickles of torch that hold no model.
func isTrainerState(name string) bool {
	stem := strings.ToLower(strings.TrimSuffix(name, filepath.Ext(name)))
	for _, prefix := range []string{"training_args", "optimizer", "scheduler", "scaler", "rng_state", "random_states", "trainer_state"} {
		if strings.HasPrefix(stem, prefix) {
			return true
		}
	}
	return false
}

// isIndex knows model.safetensors.index.json and the two ways to name a variant's:
// model.fp16.safetensors.index.json and model.safetensors.index.fp16.json.
func isIndex(name string) bool { return indexOf(name) != "" }

// indexOf is the name of the one file that an index stands for, without the variant after `.index`.
func indexOf(name string) string {
	base, ok := strings.CutSuffix(name, ".json")
	i := strings.LastIndex(base, ".index")
	if !ok || i <= 0 {
		return ""
	}
	variant := base[i+len(".index"):]
	if variant != "" && (variant[0] != '.' || strings.Count(variant, ".") > 1) {
		return ""
	}
	return base[:i]
}

// indexStem is the stem of an index's model; loaders that are given no variant look for it without.
func indexStem(name string) string {
	base := indexOf(name)
	if base == "" {
		return "model"
	}
	if f := familyOf(base); f != nil {
		base = strings.TrimSuffix(base, filepath.Ext(base))
	}
	if stem, ok := known(base); ok {
		return stem
	}
	return base
}

// knownStem is the stem of a file that goes by a name loaders know, else `model`.
func knownStem(name string) string {
	if familyOf(name) != nil {
		name = strings.TrimSuffix(name, filepath.Ext(name))
	}
	if stem, ok := known(name); ok {
		return stem
	}
	return "model"
}

// standard tells whether a file has one of the names that a model's directory gives its weights.
func standard(name string) bool { return standardStem(name) != "" }

// standardStem is the stem of such a name, of an index or a part that of the whole; empty for any other.
func standardStem(name string) string {
	if base := indexOf(name); base != "" {
		name = base
	}
	if familyOf(name) == nil {
		return ""
	}
	stem := strings.TrimSuffix(name, filepath.Ext(name))
	if part, ok := parsePart(name); ok {
		stem = part.stem
	}
	stem, _ = known(stem)
	return stem
}

// known finds the stem under which loaders look for the safetensors file of that name or of a
// variant of it; for pytorch_model it is `model`.
func known(stem string) (string, bool) {
	base, _, _ := strings.Cut(stem, ".")
	switch base {
	case "model", "pytorch_model":
		return "model", true
	case "diffusion_pytorch_model", "adapter_model", "consolidated":
		return base, true
	}
	return "", false
}

package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"weightfs/disk"
	"weightfs/format/set"
	"weightfs/format/tensor"
)

// Ollama's store is manifests/HOST/NAMESPACE/NAME/TAG, each JSON that lists layers, and
// blobs/sha256-HEX. Since its version 0.40 manifests-v2 stands beside manifests and comes first: its
// entries are links to blobs, its public host is ollama.com, and a manifest may be a list of others,
// one for each runner.

// A Blob is a file of a store, with the name that its manifest gives it.
type Blob struct {
	Path string
	Name string // a tensor's, or the beginning that the names of a group share
}

// Rename is the model's name of the tensor that a blob calls key. Blobs of image models leave out
// the component (text_encoder/…) or call every tensor `data`.
func (b Blob) Rename(key string) string {
	under := func(name string) bool { return key == name || strings.HasPrefix(key, name+".") }
	i := strings.LastIndexByte(b.Name, '/') + 1
	component, rest := b.Name[:i], b.Name[i:]
	switch {
	case b.Name == "" || under(b.Name):
		return key
	case under("data") && !under(rest):
		return b.Name + strings.TrimPrefix(key, "data")
	case strings.HasPrefix(key, component):
		return key
	}
	return component + key
}

const (
	ollamaPrefix = "ollama:"
	layerType    = "application/vnd.ollama.image."
	listType     = "application/vnd.ollama.manifest.list.v2+json"
	maxManifest  = 64 << 20
	publicHost   = "registry.ollama.ai"
	publicHostV2 = "ollama.com"
)

// OllamaStores are the directories where models of Ollama may be, best first.
func (e Env) OllamaStores() []string {
	if dir := e.dir("OLLAMA_MODELS"); dir != "" {
		return []string{dir}
	}
	return []string{e.home(".ollama", "models"), e.Shared}
}

// An ollamaName is HOST/NAMESPACE/NAME:TAG with the defaults filled in.
type ollamaName struct{ host, space, name, tag string }

var ollamaPart = regexp.MustCompile(`^[A-Za-z0-9_][\w.:-]*$`)

func parseOllama(name string) (ollamaName, bool) {
	n := ollamaName{publicHost, "library", "", "latest"}
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		name, n.tag = name[:i], name[i+1:]
	}
	parts := strings.Split(name, "/")
	switch len(parts) {
	case 1:
		n.name = parts[0]
	case 2:
		n.space, n.name = parts[0], parts[1]
	case 3:
		n.host, n.space, n.name = parts[0], parts[1], parts[2]
	default:
		return n, false
	}
	for _, part := range []string{n.host, n.space, n.name, n.tag} {
		if !ollamaPart.MatchString(part) {
			return n, false
		}
	}
	return n, true
}

// String is the shortest form.
func (n ollamaName) String() string {
	s := n.name + ":" + n.tag
	switch {
	case n.host != publicHost:
		return n.host + "/" + n.space + "/" + s
	case n.space != "library":
		return n.space + "/" + s
	}
	return s
}

// manifests are the files where the name's manifest may be, in Ollama's order.
func (n ollamaName) manifests(store string) []string {
	v2, old := n.host, []string{n.host}
	if n.host == publicHost || n.host == publicHostV2 {
		v2, old = publicHostV2, []string{publicHost, publicHostV2}
	}
	out := []string{filepath.Join(store, "manifests-v2", strings.ReplaceAll(v2, ":", "%3A"), n.space, n.name, n.tag)}
	for _, host := range old {
		out = append(out, filepath.Join(store, "manifests", host, n.space, n.name, n.tag))
	}
	return out
}

func (e Env) resolveOllama(source, name string) (Place, error) {
	n, ok := parseOllama(name)
	if !ok {
		return Place{}, &NotFoundError{Source: source, Msg: fmt.Sprintf("%q is no name of a model", name), Hint: "ollama:NAME[:TAG]"}
	}
	stores := e.OllamaStores()
	for _, store := range stores {
		for _, path := range n.manifests(store) {
			if _, err := os.Stat(path); err != nil {
				if errors.Is(err, os.ErrPermission) {
					return Place{}, err
				}
				continue
			}
			return ollamaPlace(store, path, ollamaPrefix+n.String())
		}
	}
	return Place{}, &NotFoundError{Source: source, Msg: "not in Ollama's store " + strings.Join(stores, " or "), Hint: "ollama pull " + n.String()}
}

// A layer is an entry of a manifest.
type layer struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Name      string `json:"name"`
	Runner    string `json:"runner"`
}

type manifest struct {
	MediaType string  `json:"mediaType"`
	Layers    []layer `json:"layers"`
	Manifests []layer `json:"manifests"`
}

// ollamaPlace reads the manifest at path.
func ollamaPlace(store, path, display string) (Place, error) {
	p := Place{Path: path, Display: display}
	m, err := readManifest(store, path)
	if err != nil {
		return Place{}, err
	}
	var models []string
	for _, l := range m.Layers {
		kind, name := l.kind()
		switch kind {
		case "model", "tensor", "adapter", "projector":
		default:
			continue
		}
		blob, err := blobPath(store, l.Digest)
		if err != nil {
			return Place{}, manifestFault(path, tensor.ErrUnsafe, "%v", err)
		}
		switch kind {
		case "model":
			models = append(models, blob)
		case "tensor":
			p.Blobs = append(p.Blobs, Blob{blob, name})
		default:
			p.Warnings = append(p.Warnings, fmt.Sprintf("left out: the model's %s (%s)", kind, blob))
		}
	}
	return p.choose(store, models)
}

// choose takes the GGUF file if there is one, else the tensors.
func (p Place) choose(store string, models []string) (Place, error) {
	switch {
	case len(models) > 0:
		for _, extra := range models[1:] {
			p.Warnings = append(p.Warnings, fmt.Sprintf("left out: another model layer (%s)", extra))
		}
		p.Path, p.Blobs = models[0], nil
		return p, missing(store, models[:1])
	case len(p.Blobs) > 0:
		paths := make([]string, len(p.Blobs))
		for i, b := range p.Blobs {
			paths[i] = b.Path
		}
		return p, missing(store, paths)
	}
	return Place{}, manifestFault(p.Path, tensor.ErrUnsupported, "the manifest has no layer with weights")
}

// kind is the last word of the layer's type, and the name wherever it stands: beside the type or as
// its parameter.
func (l layer) kind() (kind, name string) {
	mediaType, params, err := mime.ParseMediaType(l.MediaType)
	if err != nil {
		mediaType = l.MediaType
	}
	kind, ok := strings.CutPrefix(mediaType, layerType)
	if !ok {
		return "", ""
	}
	if l.Name != "" {
		return kind, l.Name
	}
	return kind, params["name"]
}

func manifestFault(path string, reason error, msg string, args ...any) error {
	return &tensor.FormatError{Format: "ollama manifest", File: path, Off: -1, Msg: fmt.Sprintf(msg, args...), Err: reason}
}

// readManifest reads a manifest, of a list of them the one whose weights every version understands:
// ggml's, else llama.cpp's, else the first.
func readManifest(store, path string) (*manifest, error) {
	m, err := parseManifest(path)
	if err != nil || m.MediaType != listType && len(m.Manifests) == 0 {
		return m, err
	}
	if len(m.Manifests) == 0 {
		return nil, manifestFault(path, tensor.ErrMalformed, "a list of no manifests")
	}
	child := m.Manifests[0]
	for _, runner := range []string{"llamacpp", "ggml"} {
		if i := slices.IndexFunc(m.Manifests, func(l layer) bool { return strings.EqualFold(l.Runner, runner) }); i >= 0 {
			child = m.Manifests[i]
		}
	}
	blob, err := blobPath(store, child.Digest)
	if err != nil {
		return nil, manifestFault(path, tensor.ErrUnsafe, "%v", err)
	}
	if err := missing(store, []string{blob}); err != nil {
		return nil, err
	}
	return parseManifest(blob)
}

func parseManifest(path string) (*manifest, error) {
	data, err := readSmall(path, maxManifest)
	if err != nil {
		return nil, err
	}
	m := new(manifest)
	if err := json.Unmarshal(data, m); err != nil {
		return nil, manifestFault(path, tensor.ErrMalformed, "%v", err)
	}
	return m, nil
}

var digest = regexp.MustCompile(`^sha256:([0-9a-f]{64})$`)

// blobPath is the file of a digest. Nothing else may stand in a manifest: it would be a way out of
// the store.
func blobPath(store, d string) (string, error) {
	m := digest.FindStringSubmatch(d)
	if m == nil {
		return "", fmt.Errorf("digest %.100q is not sha256: and 64 hexadecimal digits", d)
	}
	return filepath.Join(store, "blobs", "sha256-"+m[1]), nil
}

// missing checks that blobs are there.
func missing(store string, paths []string) error {
	fault := &set.IncompleteError{Dir: filepath.Join(store, "blobs"), Total: len(paths)}
	for _, path := range paths {
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			a := set.Absent{Name: filepath.Base(path)}
			if st, err := os.Stat(path + "-partial"); err == nil {
				a.Download = fmt.Sprintf("%s-partial, %d bytes", path, st.Size())
			}
			fault.Missing = append(fault.Missing, a)
		}
	}
	if len(fault.Missing) == 0 {
		return nil
	}
	return fault
}

// readSmall reads a regular file of at most max bytes.
func readSmall(path string, max int64) ([]byte, error) {
	f, _, err := disk.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, max+1))
	if err == nil && int64(len(data)) > max {
		err = fmt.Errorf("%s: more than %d bytes", path, max)
	}
	return data, err
}

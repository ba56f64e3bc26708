package set

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"

	"weightfs/format/tensor"
)

// The largest known indexes have 200,000 entries in 20 MB and a few hundred files.
const (
	maxIndexSize  = 100 << 20
	maxIndexFiles = 1 << 16
	maxWeights    = 1 << 22
)

// readIndex reads the weight_map of an index file.
func readIndex(path string) ([]Weight, error) {
	data, err := readSmall(path)
	if err == nil {
		var weights []Weight
		if weights, err = parseIndex(data); err == nil {
			return weights, nil
		}
	}
	if fault, ok := errors.AsType[*tensor.FormatError](err); ok {
		fault.File = path
	}
	return nil, err
}

func readSmall(path string) ([]byte, error) {
	// O_NONBLOCK: opening a FIFO would wait for its writer.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, lost(path, err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, irregular(path, st)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxIndexSize+1))
	if err == nil && len(data) > maxIndexSize {
		err = indexFault(-1, tensor.ErrTooLarge, "%d bytes exceed the limit of %d for an index", st.Size(), maxIndexSize)
	}
	return data, err
}

func indexFault(off int64, reason error, msg string, args ...any) *tensor.FormatError {
	return &tensor.FormatError{Format: "index", Off: off, Msg: fmt.Sprintf(msg, args...), Err: reason}
}

// An indexParser reads by token, since encoding/json's Unmarshal drops order, duplicates and
// positions.
type indexParser struct {
	dec     *json.Decoder
	size    int64
	weights []Weight
	files   map[string]string // by name as written: one string for all its entries
	seen    map[string]struct{}
}

func parseIndex(data []byte) ([]Weight, error) {
	if len(data) < maxName && bytes.HasPrefix(data, []byte("../")) && !bytes.ContainsAny(data, "{\n") {
		return nil, indexFault(0, tensor.ErrMalformed, "a copy made a file of a symbolic link: it holds only the path %q", data)
	}
	if off := invalidUTF8(data); off >= 0 {
		return nil, indexFault(int64(off), tensor.ErrMalformed, "not valid UTF-8")
	}
	p := &indexParser{dec: json.NewDecoder(bytes.NewReader(data)), size: int64(len(data)), files: map[string]string{}}
	p.dec.UseNumber() // a total_size of 1e999 is nobody's concern
	if err := p.parse(); err != nil {
		return nil, err
	}
	return p.weights, nil
}

func invalidUTF8(data []byte) int {
	if utf8.Valid(data) {
		return -1
	}
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n <= 1 {
			return i
		}
		i += n
	}
	return -1
}

func (p *indexParser) parse() error {
	if err := p.open("an index"); err != nil {
		return err
	}
	for p.dec.More() {
		key, err := p.token()
		switch {
		case err != nil:
			return err
		case key != "weight_map":
			err = p.skip()
		case p.seen != nil:
			return p.fault(tensor.ErrMalformed, "weight_map is there twice")
		default:
			err = p.weightMap()
		}
		if err != nil {
			return err
		}
	}
	if _, err := p.token(); err != nil { // the closing brace
		return err
	}
	if _, err := p.dec.Token(); err != io.EOF {
		return p.fault(tensor.ErrMalformed, "there is more after the end of the JSON object")
	}
	if p.seen == nil {
		return indexFault(-1, tensor.ErrMalformed, "no weight_map: not the index of a checkpoint")
	}
	if len(p.weights) == 0 {
		return indexFault(-1, tensor.ErrMalformed, "weight_map is empty")
	}
	return nil
}

func (p *indexParser) weightMap() error {
	p.seen = map[string]struct{}{}
	if err := p.open("weight_map"); err != nil {
		return err
	}
	for p.dec.More() {
		key, err := p.token()
		if err != nil {
			return err
		}
		if err := p.weight(key.(string)); err != nil { // an object's keys are strings
			return err
		}
	}
	_, err := p.token()
	return err
}

func (p *indexParser) weight(name string) error {
	if _, twice := p.seen[name]; twice {
		return p.faultOf(name, tensor.ErrMalformed, "weight_map has it twice")
	}
	p.seen[name] = struct{}{}
	off := p.dec.InputOffset()
	value, err := p.token()
	if err != nil {
		return err
	}
	file, ok := value.(string)
	if !ok {
		return p.faultOf(name, tensor.ErrMalformed, "weight_map has %s in place of a file name", kind(value))
	}
	clean, known := p.files[file]
	if !known {
		if clean, err = Local(file); err != nil {
			fault := indexFault(off, tensor.ErrUnsafe, "weight_map: %v", err)
			fault.Tensor = name
			return fault
		}
		if len(p.files) == maxIndexFiles {
			return p.fault(tensor.ErrTooLarge, "weight_map names more than %d files", maxIndexFiles)
		}
		p.files[file] = clean
	}
	if len(p.weights) == maxWeights {
		return p.fault(tensor.ErrTooLarge, "weight_map has more than %d entries", maxWeights)
	}
	p.weights = append(p.weights, Weight{name, clean})
	return nil
}

// open takes the brace that an object begins with.
func (p *indexParser) open(what string) error {
	t, err := p.token()
	if err == nil && t != json.Delim('{') {
		return p.fault(tensor.ErrMalformed, "%s is %s, not a JSON object", what, kind(t))
	}
	return err
}

// skip reads over one value without keeping it.
func (p *indexParser) skip() error {
	for depth := 0; ; {
		t, err := p.token()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// token gives the next token; an object that is cut off is io.EOF to the decoder.
func (p *indexParser) token() (json.Token, error) {
	t, err := p.dec.Token()
	switch syntax, _ := errors.AsType[*json.SyntaxError](err); {
	case err == nil:
		return t, nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, indexFault(p.size, tensor.ErrTruncated, "the JSON ends in the middle")
	case syntax != nil:
		return nil, indexFault(min(max(syntax.Offset, p.dec.InputOffset()), p.size), tensor.ErrMalformed, "%s", syntax)
	}
	return nil, p.fault(tensor.ErrMalformed, "%v", err)
}

func (p *indexParser) fault(reason error, msg string, args ...any) *tensor.FormatError {
	return indexFault(p.dec.InputOffset(), reason, msg, args...)
}

func (p *indexParser) faultOf(name string, reason error, msg string, args ...any) *tensor.FormatError {
	fault := p.fault(reason, msg, args...)
	fault.Tensor = name
	return fault
}

func kind(t json.Token) string {
	switch v := t.(type) {
	case nil:
		return "null"
	case bool:
		return fmt.Sprint(v)
	case json.Number:
		return "the number " + string(v)
	case string:
		return "a string"
	case json.Delim:
		if v == '[' {
			return "an array"
		}
	}
	return "an object"
}

// maxName is the longest path that Linux takes.
const maxName = math.MaxUint16 >> 4

// Local checks a file name that a checkpoint gives, and cleans it: relative, inside the directory
// by its words alone. What it names may be a link anywhere, as every file in a hub cache is.
func Local(name string) (string, error) {
	switch {
	case name == "":
		return "", errors.New("the file name is empty")
	case len(name) > maxName:
		return "", fmt.Errorf("the file name has %d bytes, more than %d", len(name), maxName)
	case strings.ContainsRune(name, 0):
		return "", fmt.Errorf("the file name %q has a NUL in it", name)
	case strings.ContainsRune(name, '\\'):
		return "", fmt.Errorf("the file name %q has a backslash in it", name)
	case path.IsAbs(name):
		return "", fmt.Errorf("the path %q is absolute and leaves the directory", name)
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", fmt.Errorf("the path %q leaves the directory", name)
		}
	}
	clean := path.Clean(name)
	if clean == "." || !filepath.IsLocal(clean) {
		return "", fmt.Errorf("the path %q names no file in the directory", name)
	}
	return clean, nil
}

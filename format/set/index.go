package set

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"weightfs/disk"
	"weightfs/format/detect"
	"weightfs/format/tensor"
)

// The largest known indexes have 200,000 entries in 20 MB and a few hundred files.
const (
	maxIndexSize  = 100 << 20
	maxIndexFiles = 1 << 16
	maxWeights    = 1 << 22
)

// A WeightMap is what an index says of where the tensors are.
type WeightMap struct {
	Weights []Weight       // in the index's order
	at      map[string]int // the positions, by tensor
}

// A Weight is one entry of an index: the file that is said to hold a tensor.
type Weight struct{ Tensor, File string }

// Find is the position of a tensor's entry.
func (m *WeightMap) Find(tensor string) (i int, ok bool) {
	i, ok = m.at[tensor]
	return i, ok
}

// readIndex reads the weight_map of an index file.
func readIndex(path string) (*WeightMap, error) {
	data, err := readSmall(path)
	if err == nil {
		var m *WeightMap
		if m, err = parseIndex(data); err == nil {
			return m, nil
		}
	}
	if known := knownMistake(data); known != nil {
		err = known
	}
	if fault, ok := errors.AsType[*tensor.FormatError](err); ok {
		fault.File = path
	}
	return nil, err
}

// knownMistake tells what stands in the place of an index, where that is known: a Git LFS pointer, an
// HTML page.
func knownMistake(data []byte) error {
	if text := bytes.TrimLeft(bytes.TrimPrefix(data, []byte("\ufeff")), " \t\r\n"); len(text) == 0 || bytes.ContainsAny(text[:1], "{[.") {
		return nil
	}
	_, err := detect.Detect(bytes.NewReader(data), int64(len(data)))
	if !errors.Is(err, tensor.ErrUnsupported) {
		return nil
	}
	return err
}

func readSmall(path string) ([]byte, error) {
	f, st, err := disk.Open(path)
	if err != nil {
		return nil, lost(path, err)
	}
	defer f.Close()
	if st.Size() > maxIndexSize {
		return nil, indexFault(-1, tensor.ErrTooLarge, "%d bytes exceed the limit of %d for an index", st.Size(), maxIndexSize)
	}
	data := make([]byte, st.Size())
	n, err := io.ReadFull(f, data)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil // it was cut meanwhile, and the parser says where it ends
	}
	return data[:n], err
}

func indexFault(off int64, reason error, msg string, args ...any) *tensor.FormatError {
	return &tensor.FormatError{Format: "index", Off: off, Msg: fmt.Sprintf(msg, args...), Err: reason}
}

// An indexParser walks over JSON that is known to be valid. encoding/json would drop order,
// duplicates and positions, and its Token takes a second for 200,000 entries.
type indexParser struct {
	text  string
	pos   int
	files map[string]string // by name as written: one string for all its entries
	out   WeightMap
}

func parseIndex(data []byte) (*WeightMap, error) {
	if err := checkJSON(data); err != nil {
		return nil, err
	}
	p := &indexParser{text: string(data), files: map[string]string{}}
	if err := p.parse(); err != nil {
		return nil, err
	}
	return &p.out, nil
}

func checkJSON(data []byte) error {
	if len(data) < maxName && bytes.HasPrefix(data, []byte("../")) && !bytes.ContainsAny(data, "{\n") {
		return indexFault(0, tensor.ErrMalformed, "a copy made a file of a symbolic link: it holds only the path %q", data)
	}
	for mark, encoding := range map[string]string{"\ufeff": "UTF-8", "\xff\xfe": "UTF-16", "\xfe\xff": "UTF-16"} {
		if bytes.HasPrefix(data, []byte(mark)) {
			fault := indexFault(0, tensor.ErrMalformed, "begins with a byte order mark of %s, which JSON does not have", encoding)
			fault.Hint = "save it as UTF-8 without one"
			return fault
		}
	}
	if off := invalidUTF8(data); off >= 0 {
		return indexFault(int64(off), tensor.ErrMalformed, "not valid UTF-8")
	}
	if len(data) == 0 {
		return indexFault(0, tensor.ErrTruncated, "an empty file")
	}
	if json.Valid(data) {
		return nil
	}
	err := json.Unmarshal(data, new(json.RawMessage))
	syntax, ok := errors.AsType[*json.SyntaxError](err)
	switch {
	case !ok:
		return indexFault(-1, tensor.ErrMalformed, "%v", err)
	case syntax.Offset >= int64(len(data)) && strings.Contains(err.Error(), "end of JSON"):
		return indexFault(int64(len(data)), tensor.ErrTruncated, "the JSON ends in the middle")
	}
	return indexFault(max(syntax.Offset-1, 0), tensor.ErrMalformed, "%v", err)
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
	err := p.object("an index", func(key string) error {
		switch {
		case key != "weight_map":
			p.skip()
			return nil
		case p.out.at != nil:
			return p.fault(tensor.ErrMalformed, "weight_map is there twice")
		}
		n := min(strings.Count(p.text[p.pos:], `":`), maxWeights)
		p.out.at, p.out.Weights = make(map[string]int, n), make([]Weight, 0, n)
		return p.object("weight_map", p.weight)
	})
	switch {
	case err != nil:
		return err
	case p.out.at == nil:
		return indexFault(-1, tensor.ErrMalformed, "no weight_map: not the index of a checkpoint")
	case len(p.out.Weights) == 0:
		return indexFault(-1, tensor.ErrMalformed, "weight_map is empty")
	}
	return nil
}

func (p *indexParser) weight(name string) error {
	if _, twice := p.out.Find(name); twice {
		return p.faultOf(name, tensor.ErrMalformed, "weight_map has it twice")
	}
	p.out.at[name] = len(p.out.Weights)
	if p.next() != '"' {
		return p.faultOf(name, tensor.ErrMalformed, "weight_map has %s in place of a file name", p.kind())
	}
	at := p.pos
	file := p.str()
	clean, known := p.files[file]
	if !known {
		var err error
		if clean, err = Local(file); err != nil {
			p.pos = at
			return p.faultOf(name, tensor.ErrUnsafe, "weight_map: %v", err)
		}
		if len(p.files) == maxIndexFiles {
			return p.fault(tensor.ErrTooLarge, "weight_map names more than %d files", maxIndexFiles)
		}
		p.files[file] = clean
	}
	if len(p.out.Weights) == maxWeights {
		return p.fault(tensor.ErrTooLarge, "weight_map has more than %d entries", maxWeights)
	}
	p.out.Weights = append(p.out.Weights, Weight{name, clean})
	return nil
}

// object calls value at each value of an object; value moves over it.
func (p *indexParser) object(what string, value func(key string) error) error {
	if p.next() != '{' {
		return p.fault(tensor.ErrMalformed, "%s is %s, not an object", what, p.kind())
	}
	p.pos++
	for p.next() != '}' {
		key := p.str()
		p.next()
		p.pos++ // the colon
		if err := value(key); err != nil {
			return err
		}
		if p.next() == ',' {
			p.pos++
		}
	}
	p.pos++
	return nil
}

// next is the next byte that is not white space; it stays to be read.
func (p *indexParser) next() byte {
	for p.text[p.pos] <= ' ' {
		p.pos++
	}
	return p.text[p.pos]
}

// str reads a string; without an escape it is a piece of the text.
func (p *indexParser) str() string {
	p.next()
	start := p.pos
	escaped := false
	for p.pos++; p.text[p.pos] != '"'; p.pos++ {
		if p.text[p.pos] == '\\' {
			escaped = true
			p.pos++
		}
	}
	p.pos++
	if !escaped {
		return p.text[start+1 : p.pos-1]
	}
	var s string
	json.Unmarshal([]byte(p.text[start:p.pos]), &s) // cannot fail: it was valid
	return s
}

// skip moves over a value.
func (p *indexParser) skip() {
	for depth := 0; ; {
		switch p.next() {
		case '"':
			p.str()
		case '{', '[':
			depth++
			p.pos++
		case '}', ']':
			depth--
			p.pos++
		case ',', ':':
			p.pos++
			continue
		default: // a number or a word; a bare one ends with the object around it
			for !strings.ContainsRune(" \t\r\n,:]}", rune(p.text[p.pos])) {
				p.pos++
			}
		}
		if depth == 0 {
			return
		}
	}
}

// kind names the value at pos.
func (p *indexParser) kind() string {
	switch c := p.next(); c {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	}
	return "a number"
}

func (p *indexParser) fault(reason error, msg string, args ...any) *tensor.FormatError {
	return indexFault(int64(p.pos), reason, msg, args...)
}

func (p *indexParser) faultOf(name string, reason error, msg string, args ...any) *tensor.FormatError {
	fault := p.fault(reason, msg, args...)
	fault.Tensor = name[:min(len(name), maxShown)]
	return fault
}

// maxShown is how much of a tensor's name a message shows.
const maxShown = 256

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
	case strings.HasSuffix(name, "/"):
		return "", fmt.Errorf("the path %q names a directory, not a file", name)
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

package detect

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
)

// Files that stand for another one, by how they begin.
var pointers = []struct {
	prefix string
	known
}{
	{"/annex/objects/", known{what: "a git-annex pointer, not the file itself", hint: "git annex get fetches it", broken: true}},
	{"outs:\n- md5:", known{what: "a DVC pointer, not the file itself", hint: "dvc pull fetches it", broken: true}},
}

// text recognises what a failed download or clone leaves in the place of a checkpoint.
func (f *file) text() *known {
	if !isText(f.head) {
		return nil
	}
	text := strings.TrimSpace(strings.TrimPrefix(string(f.head), "\ufeff"))
	for i := range pointers {
		if strings.HasPrefix(text, pointers[i].prefix) {
			return &pointers[i].known
		}
	}
	lower := strings.ToLower(text[:min(len(text), 256)])
	switch {
	case strings.HasPrefix(lower, "version https://git-lfs"), strings.HasPrefix(lower, "version https://hawser"):
		return f.lfs(text)
	case strings.HasPrefix(lower, "<!doctype html"), strings.HasPrefix(lower, "<html"), strings.HasPrefix(lower, "<!doctype>"):
		return &known{what: "an HTML page, as a failed download leaves it", hint: fetchIt, broken: true}
	case strings.HasPrefix(lower, "<?xml"), strings.HasPrefix(lower, "<error>"):
		return &known{what: "an XML document, as a failed download leaves it", hint: fetchIt, broken: true}
	case strings.HasPrefix(text, "{"), strings.HasPrefix(text, "["):
		return f.json(text)
	case len(text) <= 256 && strings.HasPrefix(text, "../") && !strings.Contains(text, "\n"):
		return &known{what: fmt.Sprintf("only the path %q: a copy made a file of a symbolic link", text), hint: "copy with cp -L", broken: true}
	case text == "":
		return &known{what: fmt.Sprintf("a file of %d bytes that are white space", f.size), broken: true}
	}
	if f.size < 8 {
		return nil // too small for any format, which is the better reason
	}
	return &known{what: "a text file that begins " + excerpt(text), hint: "a failed download?", broken: true}
}

// Pointer is the fault of a file that stands for another one, or nil. It is for files that may hold any
// bytes, as the data beside a model.
func Pointer(r io.ReaderAt, size int64) error {
	if size == 0 || size > maxPointer {
		return nil
	}
	f := &file{r: r, size: size}
	head, err := f.read(0, headSize)
	if err != nil {
		return err
	}
	f.head = head
	for _, prefix := range []string{"version https://git-lfs", "version https://hawser", pointers[0].prefix, pointers[1].prefix} {
		if k := f.text(); k != nil && f.has(prefix) {
			return k.fault()
		}
	}
	return nil
}

const maxPointer = 1024 // Git LFS writes no larger ones

// lfs gives the size that the pointer tells of the file it stands for.
func (f *file) lfs(text string) *known {
	k := known{what: fmt.Sprintf("a Git LFS pointer of %d bytes, not the file itself", f.size), hint: "git lfs pull fetches it", broken: true}
	for line := range strings.Lines(text) {
		digits, found := strings.CutPrefix(strings.TrimSpace(line), "size ")
		if n, err := strconv.ParseUint(digits, 10, 63); found && err == nil {
			k.what += fmt.Sprintf(", which has %d bytes (%s)", n, humanize.IBytes(n))
		}
	}
	return &k
}

func (f *file) json(text string) *known {
	if strings.Contains(text, `"weight_map"`) {
		return &known{what: "a JSON index of a sharded checkpoint", hint: "give it a name that ends in .index.json, as it has beside its shards", broken: true}
	}
	for _, key := range []string{"error", "message", "detail", "errors"} {
		if strings.HasPrefix(strings.TrimLeft(text, "{[ \t\r\n"), strconv.Quote(key)) {
			return &known{what: "a JSON error message, as a failed download leaves it: " + excerpt(text), hint: fetchIt, broken: true}
		}
	}
	return &known{what: "a JSON document that begins " + excerpt(text), broken: true}
}

func excerpt(text string) string {
	const limit = 60
	if len(text) <= limit {
		return strconv.Quote(text)
	}
	return strconv.Quote(strings.ToValidUTF8(text[:limit], "")) + "…"
}

// isText tells whether b, the end of which may cut a character, is UTF-8 without control characters.
func isText(b []byte) bool {
	for _, c := range b {
		if c < ' ' && !strings.ContainsRune("\t\n\r\f\x1b", rune(c)) || c == 0x7f {
			return false
		}
	}
	for range utf8.UTFMax - 1 {
		if r, n := utf8.DecodeLastRune(b); r == utf8.RuneError && n == 1 {
			b = b[:len(b)-1]
		}
	}
	return utf8.Valid(b)
}

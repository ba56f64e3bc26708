// Package store turns what a user calls a model into a path: the local caches of the hub's client
// and of Ollama, and directories of many checkpoints. Nothing is downloaded.
package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"weightfs/format/set"
)

// An Env is what tells where the caches are.
type Env struct {
	Getenv func(string) string
	Home   string
	Shared string // the store of Ollama's system service
}

// System is the process's own Env.
func System() Env {
	home, _ := os.UserHomeDir()
	return Env{Getenv: os.Getenv, Home: home, Shared: "/usr/share/ollama/.ollama/models"}
}

// A Place is where a source lies.
type Place struct {
	Path     string   // the file or directory; of Blobs the manifest
	Display  string   // the source with its revision or tag made plain
	Blobs    []Blob   // of a model that is stored as a file for each tensor; nil otherwise
	Warnings []string // what of the model is left out
}

// Find lists the files of the checkpoint at the place.
func (p Place) Find(opt set.Options) (*set.Set, error) {
	if p.Blobs == nil {
		s, err := set.Find(p.Path, opt)
		if err == nil {
			s.Warnings = append(slices.Clone(p.Warnings), s.Warnings...)
			if strings.HasPrefix(p.Display, ollamaPrefix) {
				s.Name = p.Display // the file's name is a digest
			}
		}
		return s, err
	}
	s := &set.Set{Dir: filepath.Dir(p.Blobs[0].Path), Name: p.Display, Stem: "model", Warnings: p.Warnings}
	names := make(map[string]Blob, len(p.Blobs))
	for _, b := range p.Blobs {
		file := filepath.Base(b.Path)
		if _, twice := names[file]; !twice {
			s.Files = append(s.Files, file)
			names[file] = b
		}
	}
	s.Rename = func(file, tensor string) string { return names[file].Rename(tensor) }
	return s, nil
}

// ErrNotFound is under every *NotFoundError.
var ErrNotFound = errors.New("not found")

// A NotFoundError is a source that is no path and in no cache.
type NotFoundError struct {
	Source string
	Msg    string
	Hint   string
}

// Error is one line.
func (e *NotFoundError) Error() string {
	if e.Hint == "" {
		return fmt.Sprintf("%s: %s", e.Source, e.Msg)
	}
	return fmt.Sprintf("%s: %s (%s)", e.Source, e.Msg, e.Hint)
}

// Unwrap gives ErrNotFound.
func (e *NotFoundError) Unwrap() error { return ErrNotFound }

// An AmbiguousError is a source that may mean one of several.
type AmbiguousError struct {
	Source  string
	Msg     string
	Choices []string // sources that are not ambiguous
}

// Error names the choices.
func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%s: %s: %s", e.Source, e.Msg, strings.Join(e.Choices, ", "))
}

// hubID is what a bare source must look like to be looked for in the hub's cache; a file's path is
// not meant so.
var (
	hubID    = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*/[\w.-]+(@.+)?$`)
	fileName = regexp.MustCompile(`(?i)\.(safetensors|gguf|bin|pt|pth|ckpt|np[yz]|onnx|json)$`)
)

// Resolve finds a source: a path that exists; hf:[//][models/]ORG/NAME[@REV][/PATH] or a page of
// huggingface.co; ollama:NAME[:TAG]; and ORG/NAME[@REV] where no path is called so.
func Resolve(source string, env Env) (Place, error) {
	switch _, err := os.Lstat(source); {
	case err == nil:
		return existing(source)
	case errors.Is(err, os.ErrPermission):
		return Place{}, err
	}
	if ref, ok, err := parseHub(source); ok || err != nil {
		if err != nil {
			return Place{}, err
		}
		return env.resolveHub(source, ref)
	}
	if name, ok := strings.CutPrefix(source, ollamaPrefix); ok {
		return env.resolveOllama(source, strings.TrimPrefix(name, "//"))
	}
	if err := remote(source); err != nil {
		return Place{}, err
	}
	if hubID.MatchString(source) && !fileName.MatchString(source) {
		ref, err := splitHub(source, source)
		if err != nil {
			return Place{}, err
		}
		place, err := env.resolveHub(source, ref)
		if fault, ok := errors.AsType[*NotFoundError](err); ok {
			fault.Msg = "no such file or directory, and " + fault.Msg
		}
		return place, err
	}
	return Place{}, &NotFoundError{Source: source, Msg: "no such file or directory"}
}

// HasPrefix tells whether a source is one by its form alone, there or not.
func HasPrefix(source string) bool {
	_, ok, err := parseHub(source)
	return ok || err != nil || strings.HasPrefix(source, ollamaPrefix) || remote(source) != nil
}

// existing is a path as it is, or the snapshot that a hub cache's folder stands for.
func existing(path string) (Place, error) {
	if isRepo(path) {
		repo := repo{dir: path, source: path}
		return repo.place("", "")
	}
	return Place{Path: path, Display: path}, nil
}

// isRepo knows a hub cache's folder of one model by what is in it.
func isRepo(path string) bool {
	return isDir(filepath.Join(path, "snapshots")) && (isDir(filepath.Join(path, "refs")) || isDir(filepath.Join(path, "blobs")))
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

func (e Env) home(elem ...string) string {
	return filepath.Join(append([]string{e.Home}, elem...)...)
}

// dir is a directory from the environment, with the shell's ~ that many configurations leave in.
func (e Env) dir(name string) string {
	dir := e.Getenv(name)
	if rest, ok := strings.CutPrefix(dir, "~/"); ok {
		return e.home(rest)
	}
	return dir
}

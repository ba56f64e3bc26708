package format

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weightfs/cachedir"
	"weightfs/format/names"
)

// kept opens a checkpoint as the second time, with the index of the first in a cache of the test's.
func keptSample(t *testing.T) (path string, opt Options) {
	old := keepAfter
	keepAfter = 0
	t.Cleanup(func() { keepAfter = old })
	path = sample(t)
	settle()
	return path, Options{IndexDir: filepath.Join(t.TempDir(), "cache")}
}

// settle waits until the files are older than the clock's coarseness.
func settle() { time.Sleep(3 * keepSettled) }

func indexes(t *testing.T, dir string) []string {
	list, err := filepath.Glob(filepath.Join(dir, "*"+cachedir.IndexExt))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestSecondOpenUsesTheIndex(t *testing.T) {
	path, opt := keptSample(t)
	first := openTest(t, path, opt)
	if first.FromIndex {
		t.Fatal("there was no index")
	}
	first.Keep()
	second := openTest(t, path, opt)
	if !second.FromIndex {
		t.Fatal("the index was not used")
	}
	for _, file := range []string{"tensors.json", "metadata.json", "json/experts.json", "raw/model/layers/0/q.weight.raw",
		"rows/experts~2/2.npy", "f32/model/layers/10/q.weight.npy", "assembled/model.safetensors", "assembled/config.json"} {
		if a, b := readNode(t, first, file), readNode(t, second, file); string(a) != string(b) {
			t.Errorf("%s: %q, was %q", file, b, a)
		}
	}
}

func TestStaleIndexIsMadeAgain(t *testing.T) {
	path, opt := keptSample(t)
	openTest(t, path, opt).Keep()
	for name, change := range map[string]func() error{
		"shard touched": func() error { return os.Chtimes(path, time.Now(), time.Unix(1e9, 0)) },
		"config added": func() error {
			return os.WriteFile(filepath.Join(filepath.Dir(path), "quantize_config.json"), nil, 0o644)
		},
		"shard's mode": func() error { return os.Chmod(path, 0o600) },
		"shard overwritten": func() error {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(path, b, 0o600)
		},
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		settle()
		c := openTest(t, path, opt)
		if c.FromIndex {
			t.Errorf("%s: the old index was used", name)
		}
		c.Keep()
		if !openTest(t, path, opt).FromIndex {
			t.Errorf("%s: the new index is not used", name)
		}
	}
}

func TestDamagedIndexIsMadeAgain(t *testing.T) {
	path, opt := keptSample(t)
	openTest(t, path, opt).Keep()
	files := indexes(t, opt.IndexDir)
	if len(files) != 1 {
		t.Fatalf("%d indexes", len(files))
	}
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	damaged := append([]byte(nil), whole...)
	damaged[len(damaged)/2] ^= 1
	for name, b := range map[string][]byte{"a bit": damaged, "cut": whole[:len(whole)-1], "empty": {}, "text": []byte("hello")} {
		if err := os.WriteFile(files[0], b, 0o600); err != nil {
			t.Fatal(err)
		}
		c := openTest(t, path, opt)
		if c.FromIndex {
			t.Errorf("%s: used", name)
		}
		c.Keep()
		if !openTest(t, path, opt).FromIndex {
			t.Errorf("%s: not made again", name)
		}
	}
}

func TestIndexIsOfTheSameOptions(t *testing.T) {
	path, opt := keptSample(t)
	openTest(t, path, opt).Keep()
	other := opt
	p, err := names.NewPattern("*experts*")
	if err != nil {
		t.Fatal(err)
	}
	other.Exclude = []names.Pattern{p}
	if c := openTest(t, path, other); c.FromIndex || c.Len() != 5 {
		t.Errorf("%d tensors, from the index: %t", c.Len(), c.FromIndex)
	}
}

func TestUnwritableCacheIsNoFault(t *testing.T) {
	path, opt := keptSample(t)
	opt.IndexDir = filepath.Join(path, "no", "directory")
	openTest(t, path, opt).Keep()
	if c := openTest(t, path, opt); c.FromIndex || c.Len() != 7 {
		t.Error("the tree is not whole")
	}
}

func TestFastOpeningKeepsNothing(t *testing.T) {
	path, opt := keptSample(t)
	keepAfter = time.Hour
	openTest(t, path, opt).Keep()
	if _, err := os.Stat(opt.IndexDir); err == nil {
		t.Error("a cache directory was made")
	}
}

func TestFileThatJustChangedIsNotKept(t *testing.T) {
	path, opt := keptSample(t)
	now := time.Now().Add(time.Hour)
	if err := os.Chtimes(path, now, now); err != nil {
		t.Fatal(err)
	}
	openTest(t, path, opt).Keep()
	if files := indexes(t, opt.IndexDir); len(files) != 0 {
		t.Errorf("kept %s", strings.Join(files, " "))
	}
}

// A server leaves the directory in which it was started, and the next program is in another one.
func TestIndexOfARelativePathIsUsedFromElsewhere(t *testing.T) {
	path, opt := keptSample(t)
	t.Chdir(filepath.Dir(path))
	openTest(t, filepath.Base(path), opt).Keep()
	again := openTest(t, filepath.Base(path), opt)
	if !again.FromIndex || again.Shards[0].Path != filepath.Base(path) {
		t.Errorf("from the index: %t, of %s", again.FromIndex, again.Shards[0].Path)
	}
	c := openTest(t, path, opt)
	t.Chdir(t.TempDir())
	if !c.FromIndex {
		t.Error("by its absolute path it has no index")
	}
	if err := c.Fresh(); err != nil {
		t.Error(err)
	}
	if got := readNode(t, c, "raw/model/layers/0/q.weight.raw"); len(got) == 0 {
		t.Error("nothing can be read")
	}
}

// A link that is switched while a checkpoint is opened must not give one model the index of another.
func TestSwitchedLinkKeepsNoIndex(t *testing.T) {
	one, opt := keptSample(t)
	other := sample(t)
	link := filepath.Join(t.TempDir(), "link")
	swap := func(to string) {
		t.Helper()
		if err := os.Symlink(to, link+".new"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(link+".new", link); err != nil {
			t.Fatal(err)
		}
	}
	settle()
	for name, switches := range map[string][]string{"once": {one, other}, "there and back": {one, other, one}} {
		swap(switches[0])
		settle()
		c := openTest(t, link, opt)
		for _, to := range switches[1:] {
			swap(to)
		}
		c.Keep()
		if n := len(indexes(t, opt.IndexDir)); n != 0 {
			t.Errorf("%s: %d indexes", name, n)
		}
	}
	swap(one)
	settle()
	openTest(t, link, opt).Keep()
	if !openTest(t, link, opt).FromIndex {
		t.Error("the index of a link is not used")
	}
	swap(other)
	if openTest(t, link, opt).FromIndex {
		t.Error("the index of a switched link is used")
	}
}

// Between the look at a path and the opening of it the path may have become another file's.
func TestIndexIsOfTheOpenFile(t *testing.T) {
	path, opt := keptSample(t)
	c := openTest(t, path, opt)
	c.Keep()
	other, err := OpenShard("other", sample(t))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	w, err := witnessOf(path)
	if err != nil {
		t.Fatal(err)
	}
	k := &kept{Witnesses: []witness{w}}
	if err := k.witnessed(c.Shards[0], path); err != nil {
		t.Error(err)
	}
	if k.witnessed(other, path) == nil {
		t.Error("another file passes for the one of the index")
	}
}

func TestIndexOfAnotherUserIsNotUsed(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	path, opt := keptSample(t)
	openTest(t, path, opt).Keep()
	if err := os.Chown(indexes(t, opt.IndexDir)[0], 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if openTest(t, path, opt).FromIndex {
		t.Error("it is used")
	}
}

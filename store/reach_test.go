package store

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReach(t *testing.T) {
	const model = "/model.safetensors"
	for name, c := range map[string]struct{ tree, want []string }{
		"files": {[]string{"lib/a.gguf", "lib/b.gguf"}, []string{"lib"}},
		"links to files": {[]string{"lib/a.gguf->../far/a.gguf", "lib/b.gguf->a.gguf", "lib/c.gguf", "far/a.gguf", "far/b.gguf"},
			[]string{"far/a.gguf", "lib"}},
		"a link to a directory, and what links there": {
			[]string{"lib/a.gguf", "lib/m->../far/m", "far/m" + model, "far/m/config.json->../../farther/config.json", "farther/config.json", "farther/x"},
			[]string{"far/m", "farther/config.json", "lib"}},
		"a hub cache": {[]string{"lib/models--o--m/blobs/1", "lib/models--o--m/snapshots/" + commA + model + "->../../blobs/1"}, []string{"lib"}},
		"a hub cache whose blobs lie elsewhere": {
			[]string{"far/1", "lib/models--o--m/blobs->../../far", "lib/models--o--m/snapshots/" + commA + model + "->../../blobs/1"}, []string{"far", "lib"}},
		"a hub cache whose model lies elsewhere": {
			[]string{"far/models--o--m/blobs/1", "far/models--o--m/snapshots/" + commA + model + "->../../blobs/1", "far/models--o--n/blobs/1", "lib/models--o--m->../far/models--o--m", "lib/models--o--x/blobs/1"},
			[]string{"far/models--o--m", "lib"}},
		"a link into a hub cache": {
			[]string{"hub/models--o--m/blobs/1", "hub/models--o--m/snapshots/" + commA + model + "->../../blobs/1", "lib/m->../hub/models--o--m/snapshots/" + commA, "lib/a.gguf"},
			[]string{"hub/models--o--m", "lib"}},
		"what dangles, goes round or is hidden": {
			[]string{"lib/a.gguf", "lib/gone->../nowhere", "lib/self->.", "lib/c/up->..", "lib/.git/x->../../far", "far/x", "lib/b.gguf->c/../../farther/x", "farther/x"},
			[]string{"farther/x", "lib"}},
		"a link to a directory above": {[]string{"lib/a.gguf", "lib/up->..", "x/y"}, []string{"", "lib"}},
		"by a link that is hidden": {[]string{"lib/a.gguf->.store/a.gguf", "lib/.store/a.gguf->../../far/a.gguf", "lib/b.gguf", "far/a.gguf"},
			[]string{"far/a.gguf", "lib"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tree(t, c.tree...)
			paths, all := library(t, filepath.Join(dir, "lib"), new(opener)).Reach()
			got := []string{}
			for _, p := range paths {
				got = append(got, strings.TrimPrefix(strings.TrimPrefix(p, realPath(dir)), "/"))
			}
			slices.Sort(got)
			if diff := cmp.Diff(c.want, got); diff != "" || !all {
				t.Errorf("all %t, %s", all, diff)
			}
		})
	}
}

func TestReachFromALink(t *testing.T) {
	dir := tree(t, "disk/a.gguf", "disk/b.gguf", "lib->disk")
	paths, _ := library(t, filepath.Join(dir, "lib"), new(opener)).Reach()
	if diff := cmp.Diff([]string{filepath.Join(realPath(dir), "disk")}, paths); diff != "" {
		t.Error(diff)
	}
}

// BenchmarkReach searches a hub cache of 10,000 models.
func BenchmarkReach(b *testing.B) {
	var specs []string
	for i := range 10_000 {
		repo := fmt.Sprintf("models--o--m%d", i)
		specs = append(specs, repo+"/blobs/1", repo+"/refs/main="+commA, repo+"/snapshots/"+commA+"/model.safetensors->../../blobs/1")
	}
	l := library(b, tree(b, specs...), new(opener))
	for b.Loop() {
		if _, all := l.Reach(); !all {
			b.Fatal(os.ErrInvalid)
		}
	}
}

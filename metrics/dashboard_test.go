package metrics

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
)

type dashboard struct {
	Panels []struct {
		ID      int
		Title   string
		Targets []struct{ Expr string }
	}
	Templating struct {
		List []struct{ Name, Type, Definition string }
	}
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	b, err := os.ReadFile("../scripts/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// labels are the series' names and their labels, as a query writes them.
func labels(families []*dto.MetricFamily) map[string][]string {
	series := map[string][]string{}
	for _, f := range families {
		names := []string{"job", "instance"}
		for _, l := range f.Metric[0].Label {
			names = append(names, l.GetName())
		}
		if f.GetType() != dto.MetricType_HISTOGRAM {
			series[f.GetName()] = names
			continue
		}
		series[f.GetName()+"_bucket"] = append(slices.Clone(names), "le")
		series[f.GetName()+"_sum"], series[f.GetName()+"_count"] = names, names
	}
	return series
}

var (
	metricName = regexp.MustCompile(`\b(?:weightfs|process|go)_[a-z0-9_]+`)
	selector   = regexp.MustCompile(`(\w+)\s*(?:=~?|!=|!~)\s*"`)
	grouping   = regexp.MustCompile(`\bby \(([^)]*)\)`)
)

func TestDashboardAsksForWhatThereIs(t *testing.T) {
	families, asked := used(t), map[string]bool{}
	series := labels(families)
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			var known []string
			for _, name := range metricName.FindAllString(target.Expr, -1) {
				if _, ok := series[name]; !ok {
					t.Errorf("panel %q: no metric %s", p.Title, name)
				}
				known, asked[name] = append(known, series[name]...), true
			}
			for _, label := range labelsOf(target.Expr) {
				if !slices.Contains(known, label) {
					t.Errorf("panel %q: no label %s in %s", p.Title, label, target.Expr)
				}
			}
		}
	}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "weightfs_") && !shown(f, asked) {
			t.Errorf("no panel shows %s", f.GetName())
		}
	}
}

// shown tells that a panel asks for one of a family's series.
func shown(f *dto.MetricFamily, asked map[string]bool) bool {
	for series := range labels([]*dto.MetricFamily{f}) {
		if asked[series] {
			return true
		}
	}
	return false
}

func labelsOf(expr string) (names []string) {
	for _, m := range selector.FindAllStringSubmatch(expr, -1) {
		names = append(names, m[1])
	}
	for _, m := range grouping.FindAllStringSubmatch(expr, -1) {
		names = append(names, strings.Split(m[1], ", ")...)
	}
	return names
}

func TestDashboardVariables(t *testing.T) {
	d := readDashboard(t)
	known := []string{"__rate_interval", "__range"} // Grafana's own
	for _, v := range d.Templating.List {
		known = append(known, v.Name)
	}
	ids := map[int]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("two panels with id %d", p.ID)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			for _, m := range regexp.MustCompile(`\$(\w+)`).FindAllStringSubmatch(target.Expr, -1) {
				if !slices.Contains(known, m[1]) {
					t.Errorf("panel %q: no variable %s", p.Title, m[1])
				}
			}
		}
	}
}

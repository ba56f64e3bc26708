package metrics

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
)

// used is a program that has done everything once, so that every metric has a series.
func used(t *testing.T) []*dto.MetricFamily {
	t.Helper()
	m := New("1.2.3")
	m.Opened(file{}, 0)
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families
}

func TestNamesFollowTheConventions(t *testing.T) {
	problems, err := promlint.NewWithMetricFamilies(used(t)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

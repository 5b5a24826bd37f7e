package history

import "testing"

func TestCrowd(t *testing.T) {
	var c crowd
	tell := func(seconds, flood, others int) {
		for i := range seconds {
			for range flood {
				c.add("mallory")
			}
			for j := range others {
				c.add([]string{"alice", "bob", "carol"}[(i+j)%3])
			}
			c.fade()
		}
	}
	want := func(when, key string) {
		t.Helper()
		if got := c.most(); got != key {
			t.Errorf("%s: %q, want %q (%+v)", when, got, key, c)
		}
	}
	want("nobody is refused", "")
	tell(5, 0, 6)
	want("three keys are refused alike", "")
	tell(20, 50, 5)
	want("one floods", "mallory")
	tell(20, 6, 6)
	want("half of them are of one", "")
	tell(5, 50, 0)
	tell(60, 0, 0)
	want("it is long ago", "")
}

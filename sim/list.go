package sim

// links are the neighbours of an item of a list.
type links[T any] struct{ before, after T }

func (n *links[T]) neighbours() *links[T] { return n }

// linked is an item that can be in a list: a pointer to what embeds its links.
type linked[T any] interface {
	comparable
	neighbours() *links[T]
}

// list is a list from whose middle items may leave. The zero value is empty.
type list[T linked[T]] struct {
	first, last T
	count       int
}

func (l *list[T]) push(x T) {
	var none T
	l.join(l.last, x)
	l.join(x, none)
	l.count++
}

// unshift puts x at the head of the list.
func (l *list[T]) unshift(x T) {
	var none T
	l.join(x, l.first)
	l.join(none, x)
	l.count++
}

// remove takes x, which must be in the list, out of it.
func (l *list[T]) remove(x T) {
	n := x.neighbours()
	l.join(n.before, n.after)
	*n = links[T]{}
	l.count--
}

// join makes after follow before; where one of them is none, the other is at that end.
func (l *list[T]) join(before, after T) {
	var none T
	if before == none {
		l.first = after
	} else {
		before.neighbours().after = after
	}
	if after == none {
		l.last = before
	} else {
		after.neighbours().before = before
	}
}

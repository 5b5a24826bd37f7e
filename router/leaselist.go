package router

// leaseList holds streams that wait for their first token and that no later
// one has overtaken, oldest first. An engine that queues serves in order, so a
// stream which was overtaken waits for a reason of its own and says nothing
// about the queue. It is threaded through the leases.
type leaseList struct{ front, back *Lease }

// push adds the youngest.
func (q *leaseList) push(l *Lease) {
	l.links.prev, l.links.next = q.back, nil
	if q.back != nil {
		q.back.links.next = l
	} else {
		q.front = l
	}
	q.back = l
}

// remove takes l out. A lease that is not in the list is left alone.
func (q *leaseList) remove(l *Lease) {
	if !q.holds(l) {
		return
	}
	if l.links.prev != nil {
		l.links.prev.links.next = l.links.next
	} else {
		q.front = l.links.next
	}
	if l.links.next != nil {
		l.links.next.links.prev = l.links.prev
	} else {
		q.back = l.links.prev
	}
	l.links.prev, l.links.next = nil, nil
}

// overtake drops everybody older than l, which has its first token.
func (q *leaseList) overtake(l *Lease) {
	if !q.holds(l) {
		return
	}
	for q.front != l {
		q.remove(q.front)
	}
}

// holds reports whether l is in the list.
func (q *leaseList) holds(l *Lease) bool { return l.links.prev != nil || q.front == l }

// pendingHeap holds the leases that tell no first token, by the time at which
// they count as decoding: a binary heap, each lease knowing its place.
type pendingHeap []*Lease

// next returns the earliest, nil if there is none.
func (h pendingHeap) next() *Lease {
	if len(h) == 0 {
		return nil
	}
	return h[0]
}

// push adds l.
func (h *pendingHeap) push(l *Lease) {
	*h = append(*h, l)
	l.links.slot = len(*h) - 1
	h.up(l.links.slot)
}

// remove takes l out; a lease that is not in the heap is left alone.
func (h *pendingHeap) remove(l *Lease) {
	i := l.links.slot
	if i < 0 {
		return
	}
	last := len(*h) - 1
	h.swap(i, last)
	(*h)[last] = nil
	*h = (*h)[:last]
	l.links.slot = -1
	if i < last {
		h.up(i)
		h.down(i)
	}
}

func (h pendingHeap) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].links.slot, h[j].links.slot = i, j
}

func (h pendingHeap) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h[i].links.due.Before(h[parent].links.due) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h pendingHeap) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if right := child + 1; right < len(h) && h[right].links.due.Before(h[child].links.due) {
			child = right
		}
		if !h[child].links.due.Before(h[i].links.due) {
			return
		}
		h.swap(i, child)
		i = child
	}
}

package relayloop

import "strconv"

// frame returns out as a chunk. Where out lies in room, which begins frameHead
// bytes before what was read and has frameTail behind it, it stays there; else it
// is put together in spare, which is returned as it has become.
func frame(room, spare, out []byte) (chunk, spareAfter []byte) {
	var size [frameHead]byte
	head := append(strconv.AppendUint(size[:0], uint64(len(out)), 16), '\r', '\n')
	if at := cap(room) - cap(out); at >= len(head) && at+len(out)+frameTail <= len(room) && &room[at] == &out[0] {
		from := at - len(head)
		copy(room[from:], head)
		copy(room[at+len(out):], "\r\n")
		return room[from : at+len(out)+frameTail], spare
	}
	spare = append(append(append(spare[:0], head...), out...), '\r', '\n')
	return spare, spare
}

-- Deletes a file, and takes it out of the count. It takes it out of the sums as well: to add up all entries anew for
-- each file that goes costs as much as there are.
-- KEYS: sizes, ends, owners, sums, the file's head, its content, its owner's files. ARGV: id
shrink(ARGV[1])
redis.call('DEL', KEYS[5], KEYS[6])
redis.call('ZREM', KEYS[7], ARGV[1])
return 1

# Files of Storable with an object of the real Bloom::Filter. Keys are the lines of standard input:
#
#   perl storable.pl write FILE CAPACITY RATE < keys    FILE, as nstore() writes it with sorted fields, and the same
#                                                       object as store() of a reference, in FILE.store; as freeze(), in
#                                                       FILE.freeze; as nfreeze(), in FILE.nfreeze
#   perl storable.pl check FILE < keys                  prints 1 or 0 for each key
#   perl storable.pl add FILE < keys                    adds keys to the object
#   perl storable.pl show FILE                          prints its capacity, error rate, length, hash functions and keys
use strict;
use warnings;
use Bloom::Filter;
use Storable qw(store nstore freeze nfreeze retrieve thaw);

sub write_bytes {
    my ($name, $bytes) = @_;
    open my $file, '>:raw', $name or die "$name: $!\n";
    print $file $bytes;
    close $file or die "$name: $!\n";
}

$Storable::canonical = 1;
my ($verb, $name, $capacity, $rate) = @ARGV;
if ($verb eq 'write') {
    my $filter = Bloom::Filter->new(capacity => 0 + $capacity, error_rate => 0 + $rate);
    chomp, $filter->add($_) while <STDIN>;
    nstore($filter, $name);
    store(\$filter, "$name.store");
    write_bytes("$name.freeze", freeze($filter));
    write_bytes("$name.nfreeze", nfreeze($filter));
    exit;
}

my $filter = retrieve($name);
if ($verb eq 'check') {
    chomp, print $filter->check($_) ? 1 : 0, "\n" while <STDIN>;
} elsif ($verb eq 'add') {
    chomp, $filter->add($_) while <STDIN>;
    nstore($filter, $name);
} elsif ($verb eq 'show') {
    print join(' ', $filter->capacity, $filter->error_rate, $filter->length, scalar(my @salts = $filter->salts), $filter->key_count), "\n";
} else {
    die "unknown verb $verb\n";
}

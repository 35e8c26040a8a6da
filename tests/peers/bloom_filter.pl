# A filter of the real Bloom::Filter, with given salts instead of its random salts:
#
#   perl bloom_filter.pl CAPACITY RATE PREFIX COUNT  ->  bits, salts, hex of the filter's bytes
#
# Its salts are PREFIX0, PREFIX1, ...; its keys are key-0 .. key-(COUNT - 1).
use strict;
use warnings;
use Bloom::Filter;

my ($capacity, $rate, $prefix, $count) = @ARGV;
my $filter = Bloom::Filter->new(capacity => $capacity, error_rate => $rate);
my $salts = () = $filter->salts;
$filter->{salts} = [map { "$prefix$_" } 0 .. $salts - 1];
$filter->add("key-$_") for 0 .. $count - 1;
print join(' ', $filter->length, $salts, unpack('H*', $filter->{filter})), "\n";

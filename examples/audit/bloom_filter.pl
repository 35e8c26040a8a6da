#!/usr/bin/perl
# Bloom::Filter of CPAN (Debian: libbloom-filter-perl), for an audit: perl bloom_filter.pl CAPACITY RATE
use strict;
use warnings;
use Bloom::Filter;

my ($capacity, $rate) = @ARGV;
my $filter = Bloom::Filter->new(capacity => $capacity, error_rate => $rate);
while (my $line = <STDIN>) {
    chomp $line;
    my ($verb, $key) = split / /, $line, 2;
    my $present = $filter->check($key) ? 1 : 0;
    $filter->add($key) if $verb eq 'add';
    print $verb eq 'add' ? 1 - $present : $present, "\n";
}

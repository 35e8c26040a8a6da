// The papers and books behind the chapters. Their titles are not translated.
export interface Source {
  by: string;
  title: string;
  /** Journal or conference, and the year. */
  in: string;
  doi?: string;
}

const bloom: Source = {
  by: "B. H. Bloom",
  title: "Space/time trade-offs in hash coding with allowable errors",
  in: "Communications of the ACM, 1970",
  doi: "10.1145/362686.362692",
};

export const sources: Record<number, Source[]> = {
  4: [bloom],
  5: [
    {
      by: "L. Fan, P. Cao, J. Almeida & A. Z. Broder",
      title: "Summary cache: a scalable wide-area web cache sharing protocol",
      in: "IEEE/ACM Transactions on Networking, 2000",
    },
  ],
  6: [
    bloom,
    { by: "D. E. Knuth", title: "The Art of Computer Programming", in: "volume 3, Sorting and Searching, section 6.5" },
    {
      by: "A. Broder & M. Mitzenmacher",
      title: "Network applications of Bloom filters: a survey",
      in: "Internet Mathematics, 2004",
      doi: "10.1080/15427951.2004.10129096",
    },
    {
      by: "L. Carter, R. Floyd, J. Gill, G. Markowsky & M. Wegman",
      title: "Exact and approximate membership testers",
      in: "STOC, 1978",
      doi: "10.1145/800133.804332",
    },
    {
      by: "P. Bose et al.",
      title: "On the false-positive rate of Bloom filters",
      in: "Information Processing Letters, 2008",
    },
  ],
  8: [
    {
      by: "A. Kirsch & M. Mitzenmacher",
      title: "Less hashing, same performance: building a better Bloom filter",
      in: "ESA, 2006",
      doi: "10.1007/11841036_42",
    },
  ],
  9: [
    {
      by: "F. Putze, P. Sanders & J. Singler",
      title: "Cache-, hash- and space-efficient Bloom filters",
      in: "Workshop on Experimental Algorithms, 2007",
    },
  ],
  10: [
    {
      by: "P. S. Almeida, C. Baquero, N. Preguiça & D. Hutchison",
      title: "Scalable Bloom filters",
      in: "Information Processing Letters, 2007",
      doi: "10.1016/j.ipl.2006.10.007",
    },
  ],
};

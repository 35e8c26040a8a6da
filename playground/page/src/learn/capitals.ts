/** Cities that chapter 4 adds one by one. */
export const capitals = [
  ..."Paris London Wien Lisboa Praha Oslo Warszawa Budapest Dublin Helsinki Stockholm Bern Zagreb Riga Vilnius".split(
    " ",
  ),
  ..."Tallinn Sofia Beograd Bruxelles Amsterdam København Reykjavík Valletta Luxembourg Ljubljana".split(" "),
  ..."Bratislava Sarajevo Skopje Tirana Minsk Kyiv Ankara Vaduz Podgorica Nicosia Tunis Algiers Rabat Cairo".split(" "),
  ..."Nairobi Lagos Accra Dakar Lima Quito Bogotá Santiago Montevideo Havana Ottawa Washington Canberra".split(" "),
  ..."Wellington Jakarta Manila Hanoi Seoul Tokyo Beijing Delhi".split(" "),
];

// Prints the header of CSV inputs once, before the records that are selected from them.
#pragma once

#include "cli/io/input.hpp"
#include "cli/io/output.hpp"

#include <bloomery/error.hpp>

#include <memory>

namespace bloomery::cli {

class csv_header_printer {
 public:
  /// Before the records of a chunk. Input without a header prints nothing.
  /// @throws error invalid_argument: the columns of two inputs differ, so that their records do not make one table
  void print(const chunk& piece, output& out) {
    if (!piece.header || piece.header == last_) return;
    if (last_ && piece.header->names != last_->names) {
      throw error(errc::invalid_argument, {"the columns of this CSV file are not those of the file before",
                                           *piece.source, last_->line, piece.header->line, "run once for each file"});
    }
    if (!last_) {
      out.write(piece.header->line);
      out.write("\n");
    }
    last_ = piece.header;
  }

 private:
  std::shared_ptr<const csv_header> last_;
};

}  // namespace bloomery::cli

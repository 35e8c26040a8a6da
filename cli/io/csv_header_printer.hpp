// Prints the header of CSV inputs once, before the records that are selected from them.
#pragma once

#include "cli/io/input.hpp"
#include "cli/io/output.hpp"

#include <bloomery/error.hpp>

#include <memory>

namespace bloomery::cli {

class csv_header_printer {
 public:
  /// To be called before the records of a chunk. Prints nothing for input without a header.
  /// @throws error invalid_argument: the columns of two inputs differ, so that their records do not make one table
  void print(const chunk& piece, output& out) {
    if (!piece.header || piece.header == last_) return;
    if (last_ && piece.header->names != last_->names) {
      throw error(errc::invalid_argument,
                  {"the columns of this CSV file differ from those of the previous file", *piece.source, last_->line,
                   piece.header->line, "run the command separately for each file"});
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

// The BloomFilter of Guava (Debian: libguava-java), for an audit: java Guava CAPACITY RATE
import com.google.common.hash.BloomFilter;
import com.google.common.hash.Funnels;
import java.io.*;
import java.nio.charset.StandardCharsets;

class Guava {
  public static void main(String[] arguments) throws IOException {
    var text = Funnels.stringFunnel(StandardCharsets.UTF_8);
    var filter = BloomFilter.create(text, Long.parseLong(arguments[0]), Double.parseDouble(arguments[1]));
    var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    try (var out = new PrintWriter(new BufferedOutputStream(System.out))) {
      for (String line; (line = in.readLine()) != null; ) {
        var key = line.substring(4);
        out.println((line.startsWith("add") ? filter.put(key) : filter.mightContain(key)) ? 1 : 0);
      }
    }
  }
}

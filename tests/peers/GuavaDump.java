// Filters of the real Guava, as its writeTo stores them:
//
//   java -cp guava.jar GuavaDump.java N P COUNT [N P COUNT ...]  ->  for each three, a line: hex of the file
//
// The keys are the UTF-8 strings key-0 .. key-(COUNT - 1).
import com.google.common.hash.BloomFilter;
import com.google.common.hash.Funnels;
import com.google.common.io.BaseEncoding;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;

public class GuavaDump {
  public static void main(String[] args) throws IOException {
    for (int i = 0; i + 2 < args.length; i += 3) {
      BloomFilter<CharSequence> filter = BloomFilter.create(
          Funnels.stringFunnel(StandardCharsets.UTF_8), Long.parseLong(args[i]), Double.parseDouble(args[i + 1]));
      int count = Integer.parseInt(args[i + 2]);
      for (int key = 0; key < count; ++key) filter.put("key-" + key);
      ByteArrayOutputStream file = new ByteArrayOutputStream();
      filter.writeTo(file);
      System.out.println(BaseEncoding.base16().lowerCase().encode(file.toByteArray()));
    }
  }
}

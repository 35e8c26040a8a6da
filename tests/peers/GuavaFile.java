// Files of the real Guava:
//
//   java -cp guava.jar GuavaFile.java write FILE N P STRATEGY < keys    writes a filter of the keys
//   java -cp guava.jar GuavaFile.java check FILE < keys                 prints 1 or 0 for each key
//
// STRATEGY is MURMUR128_MITZ_32 or MURMUR128_MITZ_64. Only the second one is public. Keys are lines of UTF-8.
import com.google.common.hash.BloomFilter;
import com.google.common.hash.Funnel;
import com.google.common.hash.Funnels;
import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;

public class GuavaFile {
  static final Funnel<CharSequence> FUNNEL = Funnels.stringFunnel(StandardCharsets.UTF_8);

  @SuppressWarnings("unchecked")
  static BloomFilter<CharSequence> create(long n, double p, String strategy) throws Exception {
    Class<?> strategies = Class.forName("com.google.common.hash.BloomFilterStrategies");
    for (Method method : BloomFilter.class.getDeclaredMethods()) {
      Class<?>[] types = method.getParameterTypes();
      if (!method.getName().equals("create") || types.length != 4 || types[1] != long.class) continue;
      method.setAccessible(true);
      for (Object constant : strategies.getEnumConstants()) {
        if (constant.toString().equals(strategy))
          return (BloomFilter<CharSequence>) method.invoke(null, FUNNEL, n, p, constant);
      }
    }
    throw new IllegalArgumentException("no strategy " + strategy);
  }

  public static void main(String[] args) throws Exception {
    BufferedReader keys = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    if (args[0].equals("write")) {
      BloomFilter<CharSequence> filter = create(Long.parseLong(args[2]), Double.parseDouble(args[3]), args[4]);
      for (String key; (key = keys.readLine()) != null;) filter.put(key);
      try (OutputStream file = new FileOutputStream(args[1])) {
        filter.writeTo(file);
      }
      return;
    }
    try (InputStream file = new FileInputStream(args[1])) {
      BloomFilter<CharSequence> filter = BloomFilter.readFrom(file, FUNNEL);
      StringBuilder answers = new StringBuilder();
      for (String key; (key = keys.readLine()) != null;) answers.append(filter.mightContain(key) ? "1\n" : "0\n");
      System.out.print(answers);
    }
  }
}

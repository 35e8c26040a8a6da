// A filter of cities in Java, with JNA:  java -cp jna.jar Cities.java
import com.sun.jna.*;
import com.sun.jna.ptr.*;
public class Cities {
  public interface Bloomery extends Library {
    int bloomery_make(Pointer params, PointerByReference filter);
    int bloomery_open(String name, int flags, byte[] secret, PointerByReference filter);
    int bloomery_insert(Pointer filter, byte[] key, NativeLong length, IntByReference isNew);
    int bloomery_contains(Pointer filter, byte[] key, NativeLong length, IntByReference found);
    int bloomery_save(Pointer filter, String path);
    int bloomery_close(Pointer filter);
    String bloomery_error_text();
  }
  static final Bloomery lib = Native.load("bloomery_c", Bloomery.class);
  static void check(int code) { if (code != 0) throw new RuntimeException(lib.bloomery_error_text()); }
  public static void main(String[] args) {
    var cities = new PointerByReference();
    var answer = new IntByReference();
    var params = new Memory(88); // struct bloomery_params: size, capacity, target_fpr; all other fields are 0
    params.clear();
    params.setLong(0, 88);
    params.setLong(8, 1000);
    params.setDouble(16, 0.01);
    check(lib.bloomery_make(params, cities));
    int isNew = 0;
    for (String city : new String[] {"Madrid", "Barcelona", "Madrid"}) {
      check(lib.bloomery_insert(cities.getValue(), city.getBytes(), new NativeLong(city.length()), answer));
      isNew += answer.getValue();
    }
    System.out.println("3 keys, " + isNew + " new");
    check(lib.bloomery_save(cities.getValue(), "cities.bloom"));
    check(lib.bloomery_close(cities.getValue()));
    check(lib.bloomery_open("cities.bloom", 0, null, cities)); // mapped: opening reads one page
    for (String city : new String[] {"Madrid", "Berlin"}) {
      check(lib.bloomery_contains(cities.getValue(), city.getBytes(), new NativeLong(city.length()), answer));
      System.out.println(city + ": " + (answer.getValue() == 1 ? "maybe present" : "certainly absent"));
    }
    check(lib.bloomery_close(cities.getValue()));
  }
}

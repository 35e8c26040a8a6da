// A filter of cities in Rust:  rustc cities.rs -L DIRECTORY_OF_LIBBLOOMERY_C
use std::ffi::{c_char, c_int, c_void, CStr};

#[repr(C)]
struct Params { size: usize, capacity: u64, target_fpr: f64, keys: u32, prefer_memory: u32,
                names: [*const c_char; 3], secret: *const u8, seed: u64, window_keys: u64, window_ms: u64 }

#[link(name = "bloomery_c")]
extern "C" {
    fn bloomery_make(params: *const Params, filter: *mut *mut c_void) -> c_int;
    fn bloomery_open(name: *const c_char, flags: u32, secret: *const u8, filter: *mut *mut c_void) -> c_int;
    fn bloomery_insert(filter: *mut c_void, key: *const u8, length: usize, is_new: *mut c_int) -> c_int;
    fn bloomery_contains(filter: *const c_void, key: *const u8, length: usize, found: *mut c_int) -> c_int;
    fn bloomery_save(filter: *const c_void, path: *const c_char) -> c_int;
    fn bloomery_close(filter: *mut c_void) -> c_int;
    fn bloomery_error_text() -> *const c_char;
}

fn check(code: c_int) { if code != 0 { panic!("{}", unsafe { CStr::from_ptr(bloomery_error_text()) }.to_string_lossy()) } }

fn main() { unsafe {
    let null = std::ptr::null();
    let params = Params { size: std::mem::size_of::<Params>(), capacity: 1000, target_fpr: 0.01, keys: 0,
        prefer_memory: 0, names: [null; 3], secret: std::ptr::null(), seed: 0, window_keys: 0, window_ms: 0 };
    let path = b"cities.bloom\0".as_ptr() as *const c_char;
    let (mut cities, mut new, mut found) = (std::ptr::null_mut(), [0; 3], 0);
    check(bloomery_make(&params, &mut cities));
    for (city, is_new) in ["Madrid", "Barcelona", "Madrid"].iter().zip(new.iter_mut()) {
        check(bloomery_insert(cities, city.as_ptr(), city.len(), is_new));
    }
    println!("{} keys, {} new", new.len(), new.iter().sum::<c_int>());
    check(bloomery_save(cities, path));
    check(bloomery_close(cities));
    check(bloomery_open(path, 0, std::ptr::null(), &mut cities)); // mapped: opening reads one page
    for city in ["Madrid", "Berlin"] {
        check(bloomery_contains(cities, city.as_ptr(), city.len(), &mut found));
        println!("{}: {}", city, if found == 1 { "maybe present" } else { "certainly absent" });
    }
    check(bloomery_close(cities));
} }

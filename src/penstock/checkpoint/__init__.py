"""What is kept between epochs: snapshot files, which of them count, and when to write a full one."""
